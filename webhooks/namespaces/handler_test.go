package namespaces_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/webhooks/namespaces"
)

type approvals []*approval.Approval

func (a *approvals) Approvals() []*approval.Approval { return *a }

func selecting(t *testing.T, key, value string) *approval.Approval {
	t.Helper()
	return fixture.Approval(t, "a", fmt.Sprintf("{namespaceSelector: {matchLabels: {%s: %q}}, templates: [{namespace: golden, name: fedora}]}", key, value))
}

func request(t *testing.T, before, after map[string]string) admission.Request {
	t.Helper()
	raw := func(labels map[string]string) runtime.RawExtension {
		content, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team-a", "labels": labels}})
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: content}
	}
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Name: "team-a", Operation: admissionv1.Update,
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "namespaces"},
		Object:   raw(after), OldObject: raw(before),
	}}
}

func TestTheLabelIsRemovedWhereApprovalsMaySelectAnew(t *testing.T) {
	known := approvals{selecting(t, "tenant", "yes")}
	handler := namespaces.New(&known)
	removed := []jsonpatch.JsonPatchOperation{{Operation: "remove", Path: "/metadata/labels/stencil.kubevirt.io~1governed"}}
	governed := func(labels map[string]string, value string) map[string]string {
		labels[v1alpha1.LabelGoverned] = value
		return labels
	}
	for _, tc := range []struct {
		name          string
		before, after map[string]string
		want          []jsonpatch.JsonPatchOperation
	}{
		{"a namespace that enters", governed(map[string]string{}, "false"), governed(map[string]string{"tenant": "yes"}, "false"), removed},
		{"one that leaves", governed(map[string]string{"tenant": "yes"}, "true"), governed(map[string]string{"tenant": "no"}, "true"), removed},
		{"another value that no approval names", governed(map[string]string{"tenant": "no"}, "false"), governed(map[string]string{"tenant": "maybe"}, "false"), nil},
		{"another label", governed(map[string]string{}, "false"), governed(map[string]string{"colour": "blue"}, "false"), nil},
		{"an undecided namespace", map[string]string{}, map[string]string{"tenant": "yes"}, nil},
		{"the manager's own write", governed(map[string]string{"tenant": "yes"}, "false"), governed(map[string]string{"tenant": "yes"}, "true"), nil},
		{"a value that the user sets beside", map[string]string{}, governed(map[string]string{"tenant": "yes"}, "false"), removed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			response := handler.Handle(t.Context(), request(t, tc.before, tc.after))
			if !response.Allowed {
				t.Fatalf("denied: %v", response.Result)
			}
			if diff := cmp.Diff(tc.want, response.Patches); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("the approvals of now count", func(t *testing.T) {
		known = approvals{selecting(t, "colour", "blue")}
		response := handler.Handle(t.Context(), request(t, governed(map[string]string{}, "false"), governed(map[string]string{"colour": "blue"}, "false")))
		if diff := cmp.Diff(removed, response.Patches); diff != "" {
			t.Errorf("patch (-want +got):\n%s", diff)
		}
	})
	t.Run("an object that is none is denied", func(t *testing.T) {
		r := request(t, nil, nil)
		r.Object.Raw = []byte("{")
		if response := handler.Handle(t.Context(), r); response.Allowed {
			t.Error("allowed")
		}
	})
}
