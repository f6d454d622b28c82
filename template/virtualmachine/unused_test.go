package virtualmachine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/template/virtualmachine"
)

func TestMisspeltWarnings(t *testing.T) {
	got := virtualmachine.MisspeltWarnings(map[string]any{
		"template.kubevirt.io/template-ref": "golden/fedora", "template.kubevirt.io/rendered": "x", "template.kubevirt.io/overrides": "x", "objects.template.kubevirt.io/pending": "x",
		"parameter.template.kubevirt.io/NAME": "a", "defaults.template.kubevirt.io/skip": "true", "kubevirt.io/parameter": "a", "example.com/x": "a",
		"paramter.template.kubevirt.io/SIZE": "a", "Parameter.template.kubevirt.io/CORES": "a", "parameters.template.kubevirt.io/DISK": "a",
		"template.kubevirt.io/template-reference": "golden/ubuntu", "template.kubevirt.io/templateref": "golden/ubuntu", "default.template.kubevirt.io/skip": "true",
	})
	want := []string{
		"annotation Parameter.template.kubevirt.io/CORES has no effect; did you mean parameter.template.kubevirt.io/CORES?",
		"annotation default.template.kubevirt.io/skip has no effect; did you mean defaults.template.kubevirt.io/skip?",
		"annotation parameters.template.kubevirt.io/DISK has no effect; did you mean parameter.template.kubevirt.io/DISK?",
		"annotation paramter.template.kubevirt.io/SIZE has no effect; did you mean parameter.template.kubevirt.io/SIZE?",
		"annotation template.kubevirt.io/template-reference has no effect; did you mean template.kubevirt.io/template-ref?",
		"annotation template.kubevirt.io/templateref has no effect; did you mean template.kubevirt.io/template-ref?",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
