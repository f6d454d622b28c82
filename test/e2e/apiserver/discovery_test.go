package apiserver_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/harness"
)

func TestKubectlFindsTheTemplatesOfTheDefinition(t *testing.T) {
	for _, resource := range []string{"virtualmachinetemplates", "virtualmachinetemplate", "vmt", "vmts"} {
		if out := mustKubectl(t, "", "get", resource, "--namespace="+shop(t)); !strings.Contains(out, "box") {
			t.Errorf("kubectl get %s:\n%s", resource, out)
		}
	}
	if out := mustKubectl(t, "", "explain", "vmt.spec"); !strings.Contains(out, "parameters") || !strings.Contains(out, "GROUP:      template.kubevirt.io") {
		t.Errorf("kubectl explain vmt.spec:\n%s", out)
	}
	if out := mustKubectl(t, "", "api-resources", "--api-group=template.kubevirt.io"); !strings.Contains(out, "virtualmachinetemplates") {
		t.Errorf("kubectl api-resources:\n%s", out)
	}
	out := mustKubectl(t, "", "api-resources", "--api-group="+group, "--no-headers")
	if strings.Contains(out, "virtualmachinetemplates") || !strings.Contains(out, "processedtemplates") || !strings.Contains(out, "availabletemplates") {
		t.Errorf("kubectl api-resources:\n%s", out)
	}
}

func TestBothFormsOfDiscoveryHideTheParent(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		for _, tc := range []struct{ path, accept, want, wantNot string }{
			{"/apis/" + group + "/" + version, "application/json", `"name":"virtualmachinetemplates/process"`, `"name":"virtualmachinetemplates"`},
			{"/apis/" + group + "/" + version, "application/json", `"name":"virtualmachinetemplates/create"`, "VirtualMachineTemplateList"},
			// A parent without a kind: clients ignore it.
			{"/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", `{"resource":"virtualmachinetemplates","responseKind":{"group":"","version":"","kind":""},"scope":"Namespaced","singularResource":"","verbs":null,"subresources":[{"subresource":"process"`, ""},
		} {
			got := request{method: http.MethodGet, path: tc.path, accept: tc.accept}.do(t)
			if got.code != http.StatusOK || !strings.Contains(got.body, tc.want) || tc.wantNot != "" && strings.Contains(got.body, tc.wantNot) {
				t.Errorf("GET %s: %d, want %s, not %s:\n%s", tc.path, got.code, tc.want, tc.wantNot, got.body)
			}
		}
	}
}

func TestOpenAPIDescribesWhatIsSent(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		got := request{method: http.MethodGet, path: "/openapi/v3/apis/" + group + "/" + version}.do(t)
		for _, want := range []string{"/virtualmachinetemplates/{name}/process", "/virtualmachinetemplates/{name}/create", "/processedtemplates", "targetNamespace", "ProcessedVirtualMachineTemplate"} {
			if !strings.Contains(got.body, want) {
				t.Errorf("OpenAPI v3 of %s does not say %s (%d, %d bytes)", version, want, got.code, len(got.body))
			}
		}
	}
	harness.Eventually(t, "OpenAPI v2 has the subresources", func() error {
		got := request{method: http.MethodGet, path: "/openapi/v2"}.do(t)
		if !strings.Contains(got.body, "/virtualmachinetemplates/{name}/process") {
			return errors.New("OpenAPI v2 does not know process")
		}
		return nil
	})
}
