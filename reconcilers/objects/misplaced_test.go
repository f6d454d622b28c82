package objects

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A user replays the annotation of another request.
func TestObjectsOfAnotherRequestAreNotCreated(t *testing.T) {
	const (
		pending   = "objects.template.kubevirt.io/pending"
		record    = "template.kubevirt.io/rendered"
		reference = "template.kubevirt.io/template-ref"
		golden    = `{"namespace":"golden","name":"box"}`
		another   = "the VirtualMachine does not refer to the template for which the annotation was written"
	)
	for name, tc := range map[string]struct {
		annotations map[string]any
		want        string
	}{
		"its own":                               {map[string]any{pending: "k:o:ada", record: golden, reference: "golden/box"}, ""},
		"a reference in the same namespace":     {map[string]any{pending: "k:o:ada", record: `{"namespace":"team-a","name":"box"}`, reference: "box"}, ""},
		"without a reference":                   {map[string]any{pending: "k:o:ada", record: golden}, another},
		"another reference":                     {map[string]any{pending: "k:o:ada", record: golden, reference: "golden/other"}, another},
		"a reference in another namespace":      {map[string]any{pending: "k:o:ada", record: golden, reference: "box"}, another},
		"without a record":                      {map[string]any{pending: "k:o:ada", reference: "golden/box"}, another},
		"of a dry run":                          {map[string]any{pending: "k:o::ada", record: golden, reference: "golden/box"}, "the annotation was written in a dry run"},
		"of a release that wrote no requester":  {map[string]any{pending: "k:o", record: golden, reference: "golden/box"}, ""},
		"of an account, whose name has a colon": {map[string]any{pending: "k:o:system:serviceaccount:a:b", record: golden, reference: "golden/box"}, ""},
	} {
		vm := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "web-1", "namespace": "team-a", "annotations": tc.annotations}}}
		if got := (&state{vm: vm}).misplaced(); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
