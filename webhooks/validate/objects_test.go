package validate_test

import (
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/exemption"
	"github.com/vmstencil/stencil/internal/objects"
	"github.com/vmstencil/stencil/webhooks/validate"
)

// withObjects adds a Secret and a Service to a template.
func withObjects(t *v1beta1.VirtualMachineTemplate) {
	t.Spec.Objects = []runtime.RawExtension{
		{Raw: []byte(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "${NAME}-${PASSWORD}"}}`)},
		{Raw: []byte(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "${NAME}"}}`)},
	}
}

func TestAnApprovalWithoutEntriesAllowsNoLentObject(t *testing.T) {
	lends := func(t *v1beta1.VirtualMachineTemplate) {
		t.Spec.Objects = []runtime.RawExtension{{Raw: []byte(`{"apiVersion": "v1", "kind": "Secret", "rights": "Template", "metadata": {"name": "${NAME}"}}`)}}
	}
	fakeTemplates, found := templates(t, lends)
	h := validate.New(validate.Options{Templates: fakeTemplates, Approvals: govern{approvals: approve(t, strings.Replace(approved, "%s", "", 1))}})
	check(t, h.Handle(t.Context(), request(admissionv1.Create, stored(t, found), nil)), []string{"template[golden/box].spec.objects[0]: Secret ${NAME}: the template lends the right to create it"}, "")
}

func TestObjectsThatApprovalsLimit(t *testing.T) {
	const objection = `template[golden/box].spec.objects[0]: Secret ${NAME}-${PASSWORD}: the approval allows only Secret named other; Service; use another template, or ask a cluster admin to list the object in objects (approval "team")`
	const others = ", objects: {allowed: [{kinds: [Secret], names: [other]}, {kinds: [Service]}]}"
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	keys, _ := objects.Keys(nil).Renewed(now, func(string) bool { return false })
	two := []objects.Object{
		{Version: "v1", Resource: "secrets", Manifest: []byte(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web-1-abcdefgh"}}`)},
		{Version: "v1", Resource: "services", Manifest: []byte(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web-1"}}`)},
	}
	for _, tc := range []struct {
		name     string
		approval string
		pending  []objects.Object
		user     string
		keyless  bool
		warns    bool
		want     []string
	}{
		{name: "an approval that limits nothing reads nothing", keyless: true},
		{name: "what is listed", approval: ", objects: {allowed: [{kinds: [Secret], names: ['web-1-*']}, {kinds: [Service], names: [web-1]}]}"},
		{name: "what is not listed, without the values in its name", approval: others, want: []string{objection}},
		{name: "none is allowed", approval: ", objects: {policy: Deny}", want: []string{"spec.objects[0]: Secret ${NAME}-${PASSWORD}: the approval allows no objects of templates", "spec.objects[1]: Service ${NAME}: the"}},
		{name: "Warn warns", approval: others + ", enforcement: Warn", warns: true, want: []string{objection}},
		{name: "Audit lets it pass", approval: others + ", enforcement: Audit"},
		{name: "an exempt subject", approval: others + ", exemptSubjects: [{kind: User, name: mallory}]", keyless: true},
		{name: "an exempt user", approval: others, user: "kubevirt", keyless: true},
		{name: "objects that cannot be read", approval: others, keyless: true, want: []string{"reading the objects of the template: the key that encrypted them does not exist; try again in a moment"}},
		{name: "less objects than the template has", approval: others, pending: two[1:], want: []string{"the VirtualMachine has 1 pending objects, and its template 2"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fakeTemplates, found := templates(t, withObjects)
			if tc.pending == nil {
				tc.pending = two
			}
			seal := func(metadata, _ map[string]any) {
				annotations := metadata["annotations"].(map[string]any)
				text, err := objects.Pending{Sealed: now, Objects: tc.pending}.Seal(keys, objects.Binding{Namespace: "team-a", Name: "web-1", Record: annotations[contract.AnnotationRendered].(string)})
				if err != nil {
					t.Fatal(err)
				}
				annotations[contract.AnnotationPendingObjects] = text
			}
			reader := &objects.Reader{Now: func() time.Time { return now }, Keys: func() objects.Keys {
				if tc.keyless {
					return nil
				}
				return keys
			}}
			asked := request(admissionv1.Create, stored(t, found, seal), nil)
			if tc.user != "" {
				asked.UserInfo.Username = tc.user
			}
			h := validate.New(validate.Options{
				Templates: fakeTemplates, Approvals: govern{approvals: approve(t, strings.Replace(approved, "%s", tc.approval, 1))}, Objects: reader, Exempt: exemption.Users{"kubevirt"},
			})
			response := h.Handle(t.Context(), asked)
			if tc.warns {
				if !response.Allowed || strings.Join(response.Warnings, "\n") != "not approved: "+tc.want[0] {
					t.Errorf("allowed %v, warnings %q", response.Allowed, response.Warnings)
				}
				return
			}
			check(t, response, tc.want, "abcdefgh")
		})
	}
}
