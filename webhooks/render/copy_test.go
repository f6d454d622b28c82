package render_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/exemption"
	"github.com/vmstencil/stencil/webhooks/render"
)

const copier = "system:serviceaccount:kubevirt:kubevirt-controller"

// restored is the VM that KubeVirt's controller creates when a snapshot of a rendered VM is restored into a new one.
// Its template is deleted, and it lacks fields of the template.
const restored = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web-2
  labels: {mine: "yes"}
  annotations:
    template.kubevirt.io/template-ref: golden/gone
    template.kubevirt.io/rendered: '{"namespace":"golden","name":"gone","uid":"u1","generation":3,"digest":"sha256:abc","sensitive":["PASSWORD"]}'
    parameter.template.kubevirt.io/SIZE: small
spec:
  runStrategy: Halted
  template: {spec: {hostname: web-1, domain: {devices: {}}}}
`

func TestACopyKeepsItsRecord(t *testing.T) {
	h := render.New(render.Options{Templates: &fakeTemplates{}, Permissions: rights{}, Approvals: governing(), Exempt: exemption.Users{copier}})
	request := create(t, restored)
	request.UserInfo.Username = copier
	got := apply(t, request, h.Handle(t.Context(), request))

	var want map[string]any
	if err := json.Unmarshal(request.Object.Raw, &want); err != nil {
		t.Fatal(err)
	}
	want["metadata"].(map[string]any)["labels"] = map[string]any{
		"mine": "yes", "vm.kubevirt.io/template": "gone", "vm.kubevirt.io/template.namespace": "golden", "vm.kubevirt.io/template.revision": "3",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}

	t.Run("but not a sensitive parameter", func(t *testing.T) {
		request := create(t, strings.Replace(restored, "    parameter", "    parameter.template.kubevirt.io/PASSWORD: s3cret\n    parameter", 1))
		request.UserInfo.Username = copier
		if diff := cmp.Diff(want, apply(t, request, h.Handle(t.Context(), request))); diff != "" {
			t.Errorf("the copy (-want +got):\n%s", diff)
		}
	})
}

func TestWhatOnlyLooksLikeACopyIsRendered(t *testing.T) {
	h := render.New(render.Options{Templates: &fakeTemplates{}, Permissions: rights{}, Approvals: governing(), Exempt: exemption.Users{copier}})
	_, spec, _ := strings.Cut(restored, "spec:\n")
	for name, tc := range map[string]struct {
		as       string
		from, to string
	}{
		"a user made it":                        {as: "ada"},
		"it belongs to a pool":                  {from: "  name: web-2\n", to: "  name: web-2\n  ownerReferences: [{apiVersion: pool.kubevirt.io/v1beta1, kind: VirtualMachinePool, name: p, uid: u}]\n"},
		"it has no spec":                        {from: "spec:\n" + spec, to: ""},
		"it has no record":                      {from: "template.kubevirt.io/rendered", to: "example.com/rendered"},
		"the record is none":                    {from: `'{"namespace"`, to: `'{{"namespace"`},
		"the record names another template":     {from: `"name":"gone"`, to: `"name":"box"`},
		"the record names another namespace":    {from: `"namespace":"golden"`, to: `"namespace":"silver"`},
		"the record does not say which object":  {from: `"uid":"u1",`, to: ""},
		"the record does not say which content": {from: `"sha256:abc"`, to: `""`},
		"the reference is none":                 {from: "golden/gone", to: "golden/../gone"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.from != "" && !strings.Contains(restored, tc.from) {
				t.Fatalf("there is no %q to replace", tc.from)
			}
			request := create(t, strings.Replace(restored, tc.from, tc.to, 1))
			if request.UserInfo.Username = tc.as; tc.as == "" {
				request.UserInfo.Username = copier
			}
			// No user has permissions here: if the VM is rendered, it is denied.
			if response := h.Handle(t.Context(), request); response.Allowed {
				t.Errorf("it was taken for a copy: %s", response.Patch)
			}
		})
	}
}
