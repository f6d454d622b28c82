package rego_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
)

func TestEnforcements(t *testing.T) {
	for enforcement, check := range map[string]func(t *testing.T, label string){
		"Deny":  func(t *testing.T, label string) { awaitDenial(t, label, "no "+label+" here") },
		"Warn":  func(t *testing.T, label string) { passes(t, label, "no "+label+" here") },
		"Audit": func(t *testing.T, label string) { passes(t, label, "") },
	} {
		t.Run(enforcement, func(t *testing.T) {
			label := strings.ToLower(enforcement)
			applied(t, label, "enforcement: "+enforcement, denies(label))
			active(t, label)
			check(t, label)
			passes(t, "other", "")
			// It was evaluated, with any result.
			harness.Eventually(t, "the metrics count the denial", func() error {
				metrics, err := stencil.first.Metrics(t.Context())
				if err != nil {
					return err
				}
				if want := fmt.Sprintf(`stencil_policy_evaluations_total{outcome="deny",policy=%q} `, label); !strings.Contains(metrics, want) || strings.Contains(metrics, want+"0\n") {
					return fmt.Errorf("no denial of policy %s is counted", label)
				}
				return nil
			})
		})
	}
}

func TestWhatARefusalSays(t *testing.T) {
	applied(t, "says", "", denies("says"))
	active(t, "says")
	awaitDenial(t, "says", "policy says (high): no says here at metadata.labels.test; fix: use another label")
}

func TestUpdatesAndDeletions(t *testing.T) {
	applied(t, "ops", "match: {operations: [UPDATE, DELETE]}", `package ops

deny contains "not changed like this" if input.object.metadata.labels.test == "forbidden"

deny contains "not deleted" if {
  input.request.operation == "DELETE"
  input.oldObject.metadata.labels.test == "precious"
}`)
	active(t, "ops")
	must(t, vmManifest("ops", "precious"), "apply", "-f", "-")
	t.Cleanup(func() {
		must(t, "", "delete", "vmpol", "ops", "--ignore-not-found")
		harness.Eventually(t, "the machine can be deleted", func() error {
			if got := kubectl(t, "", "delete", "vm", "ops", "--ignore-not-found"); got.Code != 0 {
				return fmt.Errorf("%s", got.Stderr)
			}
			return nil
		})
	})
	denies := func(words string, arguments ...string) {
		t.Helper()
		harness.Eventually(t, "the policy refuses", func() error {
			if got := kubectl(t, "", arguments...); got.Code == 0 || !strings.Contains(got.Stderr, words) {
				return fmt.Errorf("exit code %d and %q, want a refusal with %q", got.Code, got.Stderr, words)
			}
			return nil
		})
	}
	denies("not changed like this", "label", "vm", "ops", "test=forbidden", "--overwrite")
	denies("not deleted", "delete", "vm", "ops")
	must(t, "", "label", "vm", "ops", "other=label")

	// Policies do not deny requests of the controllers that run VMs.
	exempt := harness.Controller(t, stencil.Plane, "kubevirt:kubevirt-controller")
	as(t, exempt, "label", "vm", "ops", "test=forbidden", "--overwrite")
	as(t, exempt, "label", "vm", "ops", "test=precious", "--overwrite")
	// Finalizers of an object that is being deleted can be removed, regardless of the policies.
	must(t, "", "patch", "vm", "ops", "--type=merge", `-p={"metadata":{"finalizers":["example.com/wait"]}}`)
	as(t, exempt, "delete", "vm", "ops", "--wait=false")
	must(t, "", "patch", "vm", "ops", "--type=merge", `-p={"metadata":{"finalizers":null,"labels":{"test":"forbidden"}}}`)
}

// as runs kubectl as a user and must succeed; cleanups may call it.
func as(t *testing.T, user *controlplane.User, arguments ...string) {
	t.Helper()
	harness.Must(t, stencil.Plane, user, "", arguments...)
}

func TestWithoutAManager(t *testing.T) {
	applied(t, "strict", "match: {objectSelector: {matchLabels: {test: strict}}}", denies("strict"))
	active(t, "strict")
	awaitDenial(t, "strict", "no strict here")
	restart(t, func() {
		awaitDenial(t, "strict", "failed calling webhook")
		// Where no policy with enforcement Deny applies, nothing is denied.
		passes(t, "other", "")
	})
	awaitDenial(t, "strict", "no strict here")
	must(t, "", "delete", "vmpol", "strict")

	applied(t, "lenient", "enforcement: Warn", denies("lenient"))
	applied(t, "tolerant", "failureMode: Allow", denies("tolerant"))
	active(t, "lenient")
	active(t, "tolerant")
	passes(t, "lenient", "no lenient here")
	awaitDenial(t, "tolerant", "no tolerant here")
	restart(t, func() {
		passes(t, "lenient", "")
		passes(t, "tolerant", "")
	})
	passes(t, "lenient", "no lenient here")
}
