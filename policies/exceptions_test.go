package policies_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPolicyException(t *testing.T) {
	const (
		sizes, owners = "except virtualmachinepolicies /sizes", "except virtualmachinepolicies /owners"
		every         = "except virtualmachinepolicies /"
		created       = "metadata: {creationTimestamp: '2026-01-01T00:00:00Z'}"
		noOwners      = "no permission for exceptions from VirtualMachinePolicy owners: ask an administrator for verb except on virtualmachinepolicies.stencil.kubevirt.io"
		tooLate       = "spec.expiresAt must be at most 366 days after the creation of the PolicyException: create another one to continue it"
	)
	spec := func(expires string, policies ...string) string {
		return fmt.Sprintf("{%s, spec: {policies: [%s], expiresAt: '%s'}}", created, strings.Join(policies, ", "), expires)
	}
	policy := evaluate(t, "policy-exception", nil)
	kind := &kindOf{schema.GroupVersionKind{Group: "stencil.kubevirt.io", Version: "v1alpha1", Kind: "PolicyException"}, "policyexceptions"}
	for name, tc := range map[string]struct {
		before, after string
		may           permits
		want          string
	}{
		"the verb on each policy":       {"", spec("2026-02-01T00:00:00Z", "sizes", "owners"), permits{sizes, owners}, ""},
		"the verb on all policies":      {"", spec("2026-02-01T00:00:00Z", "sizes", "owners"), permits{every}, ""},
		"the verb on one policy":        {"", spec("2026-02-01T00:00:00Z", "sizes", "owners"), permits{sizes}, noOwners},
		"another verb":                  {"", spec("2026-02-01T00:00:00Z", "owners"), permits{"update virtualmachinepolicies /owners", "* virtualmachinepolicies /sizes"}, noOwners},
		"ended at its creation":         {"", spec("2026-01-01T00:00:00Z", "sizes"), permits{every}, "spec.expiresAt must be in the future"},
		"a second later":                {"", spec("2026-01-01T00:00:01Z", "sizes"), permits{every}, ""},
		"366 days":                      {"", spec("2027-01-02T00:00:00Z", "sizes"), permits{every}, ""},
		"in another time zone":          {"", spec("2027-01-02T01:00:00+01:00", "sizes"), permits{every}, ""},
		"a second more":                 {"", spec("2027-01-02T00:00:01Z", "sizes"), permits{every}, tooLate},
		"prolonged":                     {spec("2026-02-01T00:00:00Z", "sizes"), spec("2026-03-01T00:00:00Z", "sizes"), permits{sizes}, ""},
		"prolonged without the verb":    {spec("2026-02-01T00:00:00Z", "owners"), spec("2026-03-01T00:00:00Z", "owners"), permits{sizes}, noOwners},
		"prolonged beyond the limit":    {spec("2026-02-01T00:00:00Z", "sizes"), spec("2027-02-01T00:00:00Z", "sizes"), permits{sizes}, tooLate},
		"ended at once":                 {spec("2026-02-01T00:00:00Z", "sizes"), spec("2025-01-01T00:00:00Z", "sizes"), permits{sizes}, ""},
		"another policy instead":        {spec("2026-02-01T00:00:00Z", "sizes"), spec("2026-02-01T00:00:00Z", "owners"), permits{sizes}, noOwners},
		"a policy less":                 {spec("2026-02-01T00:00:00Z", "sizes", "owners"), spec("2026-02-01T00:00:00Z", "sizes"), permits{sizes}, ""},
		"a creation time of the future": {spec("2026-02-01T00:00:00Z", "sizes"), strings.Replace(spec("2027-02-01T00:00:00Z", "sizes"), "2026-01", "2027-01", 1), permits{sizes}, tooLate},
	} {
		t.Run(name, func(t *testing.T) {
			r := written{as: "ada", before: tc.before, after: tc.after}.request(t, kind, kind.resource)
			r.authorizer = tc.may
			if got, _ := policy.decide(t, r); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}

	// As many policies as the definition permits are within the budget, and each of them is checked.
	var names []string
	var all permits
	for i := range 16 {
		names = append(names, fmt.Sprintf("p%d", i))
		all = append(all, "except virtualmachinepolicies /"+names[i])
	}
	for i := range 17 {
		r := written{as: "ada", after: spec("2026-02-01T00:00:00Z", names...)}.request(t, kind, kind.resource)
		may, want := append(permits{}, all...), ""
		if i < 16 {
			may[i], want = "", fmt.Sprintf("no permission for exceptions from VirtualMachinePolicy p%d: ask an administrator for verb except on virtualmachinepolicies.stencil.kubevirt.io", i)
		}
		r.authorizer = may
		if got, left := policy.decide(t, r); got != want || left <= 0 {
			t.Errorf("without the verb on policy %d: got %q, want %q; budget left: %d", i, got, want, left)
		}
	}
}
