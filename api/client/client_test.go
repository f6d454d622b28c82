package client_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/api/client"
	stencilv1alpha1 "github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	templatev1beta1 "github.com/vmstencil/stencil/api/template/v1beta1"
)

// request is a request that a server received.
type request struct {
	Method, URI, ContentType string
	Body                     map[string]any
}

// serve returns the same response to every request, and stores the last request.
func serve(t *testing.T, code int, answer string) (*client.Client, *request) {
	t.Helper()
	last := &request{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*last = request{Method: r.Method, URI: r.URL.RequestURI(), ContentType: r.Header.Get("Content-Type")}
		if raw, err := io.ReadAll(r.Body); err != nil || len(raw) > 0 && json.Unmarshal(raw, &last.Body) != nil {
			t.Errorf("%v: %s", err, raw)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	// A configuration that requests protobuf from Kubernetes itself.
	made, err := client.New(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"}})
	if err != nil {
		t.Fatal(err)
	}
	return made, last
}

const (
	base      = "/apis/subresources.template.kubevirt.io/v1beta1/namespaces/golden/"
	processed = `{"kind": "ProcessedVirtualMachineTemplate", "apiVersion": "subresources.template.kubevirt.io/v1beta1", "templateRef": {"namespace": "golden", "name": "fedora"},
		"virtualMachine": {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web-1"}, "spec": {"runStrategy": "Halted"}}, "message": "hello",
		"decisions": [{"decision": "deny", "kind": "VirtualMachinePolicy", "policy": "sizes", "message": "too large"}]}`
)

func TestSubresources(t *testing.T) {
	options := &v1beta1.ProcessOptions{Parameters: map[string]string{"NAME": "web-1"}, TargetNamespace: "team-a", Explain: true}
	sent := map[string]any{"kind": "ProcessOptions", "apiVersion": "subresources.template.kubevirt.io/v1beta1",
		"parameters": map[string]any{"NAME": "web-1"}, "targetNamespace": "team-a", "explain": true}
	for _, tc := range []struct {
		name string
		call func(client.Subresources) (*v1beta1.ProcessedVirtualMachineTemplate, error)
		want request
	}{
		{
			name: "process",
			call: func(s client.Subresources) (*v1beta1.ProcessedVirtualMachineTemplate, error) {
				return s.Process(t.Context(), "fedora", options)
			},
			want: request{"POST", base + "virtualmachinetemplates/fedora/process", "application/json", sent},
		},
		{
			name: "process without options",
			call: func(s client.Subresources) (*v1beta1.ProcessedVirtualMachineTemplate, error) {
				return s.Process(t.Context(), "fedora", nil)
			},
			want: request{"POST", base + "virtualmachinetemplates/fedora/process", "application/json",
				map[string]any{"kind": "ProcessOptions", "apiVersion": "subresources.template.kubevirt.io/v1beta1"}},
		},
		{
			name: "create, as a dry run",
			call: func(s client.Subresources) (*v1beta1.ProcessedVirtualMachineTemplate, error) {
				return s.Create(t.Context(), "fedora", options, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			},
			want: request{"POST", base + "virtualmachinetemplates/fedora/create?dryRun=All", "application/json", sent},
		},
		{
			name: "a template that is sent",
			call: func(s client.Subresources) (*v1beta1.ProcessedVirtualMachineTemplate, error) {
				return s.ProcessTemplate(t.Context(), &templatev1beta1.VirtualMachineTemplate{
					ObjectMeta: metav1.ObjectMeta{Name: "fedora"},
					Spec:       templatev1beta1.VirtualMachineTemplateSpec{VirtualMachine: &runtime.RawExtension{Raw: []byte(`{"spec":{"runStrategy":"Halted"}}`)}},
				})
			},
			want: request{"POST", base + "processedtemplates", "application/json", map[string]any{
				"kind": "VirtualMachineTemplate", "apiVersion": "template.kubevirt.io/v1beta1", "metadata": map[string]any{"name": "fedora"},
				"spec": map[string]any{"virtualMachine": map[string]any{"spec": map[string]any{"runStrategy": "Halted"}}},
			}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, last := serve(t, http.StatusOK, processed)
			got, err := tc.call(c.Subresources("golden"))
			if err != nil {
				t.Fatal(err)
			}
			delete(last.Body, "status")
			if diff := cmp.Diff(tc.want, *last); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			want := []v1beta1.Decision{{Decision: v1beta1.EffectDeny, Kind: v1beta1.DecisionKindPolicy, Policy: "sizes", Message: "too large"}}
			if diff := cmp.Diff(want, got.Decisions); diff != "" || got.VirtualMachine.Name != "web-1" || got.Message != "hello" || got.TemplateRef.Name != "fedora" {
				t.Errorf("%+v (-want +got):\n%s", got, diff)
			}
		})
	}
}

func TestDefaultsOfAVirtualMachine(t *testing.T) {
	c, last := serve(t, http.StatusCreated, `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web-1"},
		"spec": {"template": {"spec": {"domain": {"devices": {}, "machine": {"type": "pc-q35-9.2"}}}}}}`)
	sent := &kubevirtv1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}, Spec: kubevirtv1.VirtualMachineSpec{Template: &kubevirtv1.VirtualMachineInstanceTemplateSpec{}}}
	got, err := c.Subresources("team-a").FillDefaults(t.Context(), sent)
	if err != nil || got.Name != "web-1" || got.Spec.Template.Spec.Domain.Machine.Type != "pc-q35-9.2" {
		t.Errorf("%+v, %v", got, err)
	}
	if want := "/apis/subresources.template.kubevirt.io/v1beta1/namespaces/team-a/defaults"; last.URI != want || last.Body["kind"] != "VirtualMachine" || last.Body["apiVersion"] != "kubevirt.io/v1" {
		t.Errorf("%+v, want %s", last, want)
	}
	if sent.Kind != "" {
		t.Error("the caller's VirtualMachine has changed")
	}
	c, _ = serve(t, http.StatusServiceUnavailable, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "ServiceUnavailable", "code": 503, "message": "the defaulter does not answer"}`)
	if _, err := c.Subresources("team-a").FillDefaults(t.Context(), sent); !apierrors.IsServiceUnavailable(err) || err.Error() != "the defaulter does not answer" {
		t.Errorf("%v", err)
	}
	c, _ = serve(t, http.StatusCreated, "{")
	if _, err := c.Subresources("team-a").FillDefaults(t.Context(), sent); err == nil {
		t.Error("half an answer was taken")
	}
}

func TestAvailableTemplates(t *testing.T) {
	c, last := serve(t, http.StatusOK, `{"apiVersion": "subresources.template.kubevirt.io/v1beta1", "kind": "AvailableTemplateList",
		"items": [{"metadata": {"name": "golden.fedora"}, "templateRef": {"namespace": "golden", "name": "fedora"}, "allowed": true, "schema": {"type": "object"}}]}`)
	got, err := c.Subresources("team-a").AvailableTemplates(t.Context(), metav1.ListOptions{LabelSelector: "os=linux"})
	if err != nil || len(got.Items) != 1 || got.Items[0].TemplateRef.Name != "fedora" || !got.Items[0].Allowed || string(got.Items[0].Schema.Raw) != `{"type": "object"}` {
		t.Errorf("%+v, %v", got, err)
	}
	if want := "/apis/subresources.template.kubevirt.io/v1beta1/namespaces/team-a/availabletemplates?labelSelector=os%3Dlinux"; last.URI != want {
		t.Errorf("%+v, want %s", last, want)
	}
	c, _ = serve(t, http.StatusForbidden, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no"}`)
	if _, err := c.Subresources("team-a").AvailableTemplates(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("%v", err)
	}
}

func TestARefusalIsAnErrorOfTheAPI(t *testing.T) {
	c, _ := serve(t, http.StatusUnprocessableEntity, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422, "message": "no",
		"details": {"causes": [{"field": "parameters[NAME]", "message": "Required value"}]}}`)
	_, err := c.Subresources("golden").Process(t.Context(), "fedora", nil)
	if !apierrors.IsInvalid(err) || !apierrors.HasStatusCause(err, "") && err.Error() != "no" {
		t.Errorf("%v", err)
	}
	c, _ = serve(t, http.StatusOK, `{"kind": "Status"`)
	if _, err := c.Subresources("golden").Process(t.Context(), "fedora", nil); err == nil {
		t.Error("half an answer was taken")
	}
}

func TestTheClientsetOfTheDefinitions(t *testing.T) {
	c, last := serve(t, http.StatusOK, `{"kind": "VirtualMachineTemplate", "apiVersion": "template.kubevirt.io/v1beta1", "metadata": {"name": "fedora", "namespace": "golden"}}`)
	if got, err := c.TemplateV1beta1().VirtualMachineTemplates("golden").Get(t.Context(), "fedora", metav1.GetOptions{}); err != nil || got.Name != "fedora" {
		t.Errorf("%+v, %v", got, err)
	}
	if want := "/apis/template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/fedora"; last.URI != want {
		t.Errorf("%s, want %s", last.URI, want)
	}
	c, last = serve(t, http.StatusCreated, `{"kind": "TemplateApproval", "apiVersion": "stencil.kubevirt.io/v1alpha1", "metadata": {"name": "team-a"}}`)
	approval := &stencilv1alpha1.TemplateApproval{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}
	if got, err := c.StencilV1alpha1().TemplateApprovals().Create(t.Context(), approval, metav1.CreateOptions{}); err != nil || got.Name != "team-a" {
		t.Errorf("%+v, %v", got, err)
	}
	if want := "/apis/stencil.kubevirt.io/v1alpha1/templateapprovals"; last.URI != want || last.Body["kind"] != "TemplateApproval" {
		t.Errorf("%+v, want %s", last, want)
	}
}
