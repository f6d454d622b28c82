package defaults

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/defaulting"
)

// lottery is a fake defaulter that returns the MAC addresses in order.
type lottery struct {
	addresses []string
	asked     []*defaulting.Request
}

func (l *lottery) Defaults(_ context.Context, request *defaulting.Request) (*defaulting.Response, error) {
	l.asked = append(l.asked, request)
	response := &defaulting.Response{Environment: environment}
	if request.Policy.MAC == defaulting.MACGenerate {
		address := l.addresses[0]
		l.addresses = l.addresses[1:]
		response.Set = []defaulting.Set{{Path: "spec.template.spec.domain.devices.interfaces[0].macAddress", Value: address, Source: defaulting.FromStencil}}
		response.Patch = []defaulting.PatchOperation{{Op: "add", Path: "/spec/template/spec/domain/devices/interfaces/0/macAddress", Value: address}}
	}
	return response, nil
}

// given holds addresses by namespace and name, and the namespace with a pool manager.
type given struct {
	unsynced bool
	taken    map[string]string
	pooled   string
}

func (g given) Synced() bool { return !g.unsynced }

func (g given) Taken(namespace, name, address string) bool {
	holder, found := g.taken[address]
	return found && holder != namespace+"/"+name && strings.HasPrefix(holder, namespace+"/")
}

func (g given) Pooled(labels map[string]string) bool { return labels["name"] == g.pooled }

// labelled returns labels for every namespace except "new".
type labelled struct{}

func (labelled) Namespace(_ context.Context, name string) (labels, annotations map[string]string, found bool) {
	return map[string]string{"name": name}, nil, name != "new"
}

func TestMACAddressesAreMadeWhereNobodyElseDoes(t *testing.T) {
	const machine = "metadata: {name: web, namespace: team-a}\nspec: {template: {spec: {domain: {devices: {interfaces: [{name: default}]}}}}}"
	for name, tc := range map[string]struct {
		policy    defaulting.MACPolicy
		namespace string
		addresses given
		drawn     []string
		want      string
		warning   string
	}{
		"not unless the policy says so":             {namespace: "team-a", want: ""},
		"one that nobody has":                       {policy: defaulting.MACGenerate, namespace: "team-a", drawn: []string{"02:00:00:00:00:01"}, want: "02:00:00:00:00:01"},
		"not the one of another machine":            {policy: defaulting.MACGenerate, namespace: "team-a", addresses: given{taken: map[string]string{"02:00:00:00:00:01": "team-a/db"}}, drawn: []string{"02:00:00:00:00:01", "02:00:00:00:00:02"}, want: "02:00:00:00:00:02"},
		"that of a machine in another namespace is": {policy: defaulting.MACGenerate, namespace: "team-a", addresses: given{taken: map[string]string{"02:00:00:00:00:01": "team-b/db"}}, drawn: []string{"02:00:00:00:00:01"}, want: "02:00:00:00:00:01"},
		"a source of chance that is none": {policy: defaulting.MACGenerate, namespace: "team-a", addresses: given{taken: map[string]string{"02:00:00:00:00:01": "team-a/db"}},
			drawn: slices.Repeat([]string{"02:00:00:00:00:01"}, 3), warning: "the defaulter does not answer"},
		"where a pool manager cares none":  {policy: defaulting.MACGenerate, namespace: "team-a", addresses: given{pooled: "team-a"}, want: ""},
		"and where it does not, one":       {policy: defaulting.MACGenerate, namespace: "team-a", addresses: given{pooled: "team-b"}, drawn: []string{"02:00:00:00:00:01"}, want: "02:00:00:00:00:01"},
		"before the addresses are known":   {policy: defaulting.MACGenerate, namespace: "team-a", addresses: given{unsynced: true}, warning: "the defaulter does not answer"},
		"in a namespace that is not known": {policy: defaulting.MACGenerate, namespace: "new", warning: "the defaulter does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lottery{addresses: tc.drawn}
			h := newHandler(nil, func(o *Options) {
				o.Defaulter, o.Addresses, o.Namespaces = l, tc.addresses, labelled{}
				o.Policy = defaulting.Policy{MAC: tc.policy}
			})
			response := h.Handle(t.Context(), requestOf(t, tc.namespace, machine, ""))
			if !response.Allowed {
				t.Fatalf("denied: %v", response.Result)
			}
			if tc.warning != "" {
				if len(response.Warnings) != 1 || !strings.Contains(response.Warnings[0], tc.warning) {
					t.Errorf("warnings: %q", response.Warnings)
				}
				return
			}
			if got := strings.Contains(string(response.Patch), "macAddress"); got != (tc.want != "") || !strings.Contains(string(response.Patch), tc.want) {
				t.Errorf("patch %s, want the address %q", response.Patch, tc.want)
			}
			if len(l.addresses) > 0 {
				t.Errorf("%d addresses were not asked for", len(l.addresses))
			}
		})
	}
}
