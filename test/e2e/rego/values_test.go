package rego_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// allValues waits until an object has the condition PolicyCompliantForAllValues with this state, "False PolicyViolations", and message; or none, when
// the state is empty.
func allValues(t *testing.T, state, message string, object ...string) {
	t.Helper()
	harness.Eventually(t, "the condition PolicyCompliantForAllValues of "+strings.Join(object, " "), func() error {
		var read struct {
			Metadata metav1.ObjectMeta
			Status   struct{ Conditions []metav1.Condition }
		}
		if err := json.Unmarshal([]byte(must(t, "", append([]string{"get", "-o", "json"}, object...)...)), &read); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(read.Status.Conditions, "PolicyCompliantForAllValues")
		if condition == nil || state == "" {
			if condition == nil && state == "" {
				return nil
			}
			return fmt.Errorf("condition %+v, want %q", condition, state)
		}
		got := string(condition.Status) + " " + condition.Reason
		if got != state || condition.Message != message || condition.ObservedGeneration != read.Metadata.Generation {
			return fmt.Errorf("%s of generation %d (now %d): %s, want %s: %s", got, condition.ObservedGeneration, read.Metadata.Generation, condition.Message, state, message)
		}
		return nil
	})
}

func TestWhatIsApprovedAndDenied(t *testing.T) {
	needGolden(t)
	must(t, gen.Manifest(gen.Template("sized", gen.InNamespace("golden"), gen.Label("sized", "true"),
		gen.Declares("CORES", `{type: int, value: "1", minimum: 1, maximum: 16}`), gen.Declares("HALF", `{type: bool, value: "false"}`), gen.Declares("IMAGE", "{value: fedora}"),
		gen.Renders("", gen.LeastSpec(), gen.Annotation("half", "${HALF}"), gen.Annotation("image", "${IMAGE}"),
			gen.Spec(`template: {spec: {domain: {cpu: {cores: "${{CORES}}"}}}}`)))), "apply", "-f", "-")
	t.Cleanup(func() {
		must(t, "", "delete", "virtualmachinetemplate", "sized", "--namespace=golden", "--ignore-not-found")
		must(t, "", "delete", "templateapproval", "sizes", "--ignore-not-found")
	})
	template, approval := []string{"virtualmachinetemplate", "sized", "--namespace=golden"}, []string{"templateapproval", "sizes"}
	approve := func(parameters string) {
		t.Helper()
		must(t, gen.Manifest(gen.Approval("sizes", gen.Governs("team-a"), gen.Approves("golden/sized"), gen.Spec("parameters: ["+parameters+"]"))), "apply", "-f", "-")
	}
	const match = "match: {templates: [{namespace: golden, selector: {matchLabels: {sized: 'true'}}}]}\n"
	const module = `package x
cores := input.object.spec.template.spec.domain.cpu.cores
deny contains sprintf("%v cores are more than 4", [cores]) if cores > 4`
	applied(t, "sized", match, module)
	active(t, "sized")
	// No approval is about it, so that all values of the template are decided.
	allValues(t, "False PolicyViolations", "with CORES=5, policy sized denies: 5 cores are more than 4", template...)

	approve("{name: CORES, allowed: ['2', '8']}")
	allValues(t, "False PolicyViolations", "with CORES=8, approved by sizes, policy sized denies: 8 cores are more than 4", template...)
	allValues(t, "False PolicyViolations", "template golden/sized with CORES=8, policy sized denies: 8 cores are more than 4", approval...)
	if got := kubectl(t, gen.Manifest(gen.VM("sized", gen.InNamespace("team-a"), gen.FromTemplate("golden/sized"), gen.Parameter("CORES", "8"))), "create", "--dry-run=server", "-f", "-"); !strings.Contains(got.Stderr, "policy sized (medium): 8 cores are more than 4") {
		t.Errorf("the VM of the counterexample is not denied by the policy: %+v", got)
	}

	// The approval is narrowed,
	const none = "no policy denies a VirtualMachine that this approval approves"
	approve("{name: CORES, allowed: ['2', '4']}")
	allValues(t, "True Compliant", "no policy denies a VirtualMachine of this template, whatever the allowed values of its parameters", template...)
	allValues(t, "True Compliant", none, approval...)
	// the policy depends on a parameter without a list of values, which the approval does not close,
	applied(t, "sized", match, module+"\ndeny contains \"no\" if input.object.metadata.annotations.image == \"debian\"")
	allValues(t, "True Compliant", none, approval...)
	approve("{name: CORES, allowed: ['2', '4']}, {name: IMAGE, anyValue: true}")
	const open = "no VirtualMachine that is denied was found, but not all were decided: policy sized"
	const depends = ": it depends on parameters whose values are not listed: IMAGE"
	allValues(t, "Unknown NotDecided", open+depends, template...)
	allValues(t, "Unknown NotDecided", open+" for template golden/sized"+depends, approval...)
	// it only warns,
	applied(t, "sized", match+"enforcement: Warn", module)
	allValues(t, "", "", template...)
	allValues(t, "", "", approval...)
	// the approval permits too much again,
	approve("{name: CORES, anyValue: true}, {name: HALF, anyValue: true}")
	applied(t, "sized", match, module)
	allValues(t, "False PolicyViolations", "with CORES=5, approved by sizes, policy sized denies: 5 cores are more than 4", template...)
	// and the policy is deleted.
	must(t, "", "delete", "vmpol", "sized")
	allValues(t, "", "", template...)
	allValues(t, "", "", approval...)
}
