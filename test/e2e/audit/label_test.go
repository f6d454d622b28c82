package audit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

func TestTheLabelFollowsTheApprovals(t *testing.T) {
	plane, _ := start(t)
	named, selected, other := namespace(t, plane), namespace(t, plane), namespace(t, plane)
	labelled := func(want ...string) {
		t.Helper()
		for _, namespace := range []string{named, selected, other, "kube-system"} {
			wanted := "false"
			for _, one := range want {
				if one == namespace {
					wanted = "true"
				}
			}
			harness.Within(t, "namespace "+namespace+" has the right label", timeout, func() error {
				got, err := lookup(t, plane, "get", "namespace", namespace, "-o", `jsonpath={.metadata.labels.stencil\.kubevirt\.io/governed}`)
				if got != wanted || err != nil {
					return fmt.Errorf("namespace %s has label %q, want %q (%w)", namespace, got, wanted, err)
				}
				return nil
			})
		}
	}
	labelled()
	apply(t, plane, approve("named-"+named, "golden", gen.Governs(named)))
	labelled(named)
	apply(t, plane, approve("selected-"+named, "golden", gen.Spec("namespaceSelector: {matchLabels: {tenant: "+named+"}}")))
	kubectl(t, plane, "", "label", "namespace", selected, "kube-system", "tenant="+named)
	t.Cleanup(func() { kubectl(t, plane, "", "label", "namespace", "kube-system", "tenant-") })
	labelled(named, selected)

	t.Run("an administrator who removes the label finds it back", func(t *testing.T) {
		kubectl(t, plane, "", "label", "namespace", named, "stencil.kubevirt.io/governed-")
		labelled(named, selected)
		kubectl(t, plane, "", "label", "namespace", named, "stencil.kubevirt.io/governed=false", "--overwrite")
		labelled(named, selected)
	})
	t.Run("an administrator who forges it finds it corrected", func(t *testing.T) {
		kubectl(t, plane, "", "label", "namespace", other, "stencil.kubevirt.io/governed=true", "--overwrite")
		labelled(named, selected)
	})
	t.Run("an approval that cannot be understood governs all the same", func(t *testing.T) {
		kubectl(t, plane, "", "patch", "templateapproval", "named-"+named, "--type=merge", `-p={"spec":{"overrides":["spec.template.spec..oops"]}}`)
		labelled(named, selected)
	})
	t.Run("a namespace that leaves a selection is not governed", func(t *testing.T) {
		kubectl(t, plane, "", "label", "namespace", selected, "tenant-")
		labelled(named)
	})
	t.Run("without an approval no namespace is governed", func(t *testing.T) {
		kubectl(t, plane, "", "delete", "templateapproval", "named-"+named)
		labelled()
	})
	t.Run("events tell the namespace's people", func(t *testing.T) {
		harness.Within(t, "events tell of the approval", timeout, func() error {
			got, err := lookup(t, plane, "get", "events", "--namespace=default", "-o",
				`jsonpath={range .items[?(@.involvedObject.name=="`+named+`")]}{.reason}: {.message}{"\n"}{end}`)
			for _, want := range []string{
				"Governed: selected by TemplateApproval named-" + named + ": VirtualMachines here must come from an approved template",
				"NotGovernedAnyMore: no TemplateApproval selects this namespace any more",
			} {
				if !strings.Contains(got, want) {
					return fmt.Errorf("no event %q (%w) in\n%s", want, err, got)
				}
			}
			return nil
		})
	})
}
