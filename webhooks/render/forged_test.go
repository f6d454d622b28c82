package render_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/template"
)

// TestAForgedRecordShowsNothingOfATemplate removes a forged override of a VM whose record names a template, as the patches of a VirtualMachineRestore can
// write both. The template's value is put in its place only for a user who may use the template, and only of the template that the record identifies.
func TestAForgedRecordShowsNothingOfATemplate(t *testing.T) {
	compiled, err := template.Compile(fixture.Template(t, "box", box))
	if err != nil {
		t.Fatal(err)
	}
	const secret = "password: " // of the template's user data
	for name, tc := range map[string]struct {
		rights rights
		uid    string
		shown  bool
	}{
		"with verb use":             {rights: everything, uid: "uid", shown: true},
		"with verb get only":        {rights: rights{granted: map[string]bool{"get box": true}}, uid: "uid"},
		"without any right":         {uid: "uid"},
		"of another template's UID": {rights: everything, uid: "other"},
		"where no answer is given":  {rights: rights{granted: everything.granted, err: errors.New("the API server is overloaded")}, uid: "uid"},
	} {
		t.Run(name, func(t *testing.T) {
			record, err := json.Marshal(map[string]any{"namespace": "golden", "name": "box", "uid": tc.uid, "generation": 7, "digest": compiled.Digest(), "base": map[string]any{}})
			if err != nil {
				t.Fatal(err)
			}
			vm := func(volumes string) []byte {
				object := map[string]any{
					"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
					"metadata": map[string]any{"name": "web-1", "annotations": map[string]any{
						"template.kubevirt.io/template-ref": "golden/box", "template.kubevirt.io/rendered": string(record),
						"template.kubevirt.io/overrides": `{"spec.template.spec.volumes[name=init].cloudInitNoCloud.userData":{"hidden":"Secret"}}`,
					}},
					"spec": map[string]any{"runStrategy": "Halted", "template": map[string]any{"spec": map[string]any{
						"hostname": "web-1", "domain": map[string]any{"devices": map[string]any{}}, "volumes": json.RawMessage(volumes),
					}}},
				}
				raw, err := json.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				return raw
			}
			request := create(t, "metadata: {name: web-1}")
			request.Operation, request.Name = admissionv1.Update, "web-1"
			request.OldObject = runtime.RawExtension{Raw: vm(`[{"name":"init","cloudInitNoCloud":{"userData":"mine"}}]`)}
			request.Object = runtime.RawExtension{Raw: vm(`[{"name":"init","cloudInitNoCloud":{}}]`)}
			h, _ := handler(t, tc.rights)
			response := h.Handle(t.Context(), request)
			answer, err := json.Marshal(response)
			if err != nil {
				t.Fatal(err)
			}
			if tc.shown {
				if !response.Allowed || !strings.Contains(string(response.Patch), secret) {
					t.Fatalf("the override is not removed: %s", answer)
				}
				return
			}
			if response.Allowed || !strings.Contains(response.Result.Message, "the template has changed since, is gone, or you may not use it") || strings.Contains(string(answer), secret) {
				t.Errorf("got %s %s", answer, response.Patch)
			}
		})
	}
}
