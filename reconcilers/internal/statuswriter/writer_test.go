package statuswriter_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
)

func TestApply(t *testing.T) {
	template := statuswriter.Object{
		Group: v1beta1.GroupVersion, Resource: "virtualmachinetemplates", Kind: "VirtualMachineTemplate", Namespace: "golden", Name: "box", UID: "uid-1",
	}
	const (
		path  = "PATCH /apis/template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/box/status?fieldManager=owner&force=true application/apply-patch+yaml "
		body  = `{"apiVersion":"template.kubevirt.io/v1beta1","kind":"VirtualMachineTemplate","metadata":{"name":"box","namespace":"golden","uid":"uid-1"},"status":{"a":1}}`
		whole = path + body
	)
	failure := func(code int, reason string) string {
		return fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "because", "reason": %q, "code": %d}`, reason, code)
	}
	for _, tc := range []struct {
		name     string
		object   statuswriter.Object
		code     int
		response string
		request  string
		want     string
	}{
		{"a template", template, 200, "not decoded", whole, ""},
		{
			"an object of the cluster", statuswriter.Policy("sizes"), 200, "{}",
			"PATCH /apis/stencil.kubevirt.io/v1alpha1/virtualmachinepolicies/sizes/status?fieldManager=owner&force=true application/apply-patch+yaml " +
				`{"apiVersion":"stencil.kubevirt.io/v1alpha1","kind":"VirtualMachinePolicy","metadata":{"name":"sizes"},"status":{"a":1}}`, "",
		},
		{"a template that was deleted", template, 404, failure(404, "NotFound"), whole, ""},
		{"a template that was replaced", template, 409, failure(409, "Conflict"), whole, ""},
		{"a template that may not be written", template, 403, failure(403, "Forbidden"), whole, "writing the status of VirtualMachineTemplate golden/box: because"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sent, _ := io.ReadAll(r.Body)
				got = strings.Join([]string{r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), string(sent)}, " ")
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.code)
				_, _ = io.WriteString(w, tc.response)
			}))
			defer server.Close()
			writer, err := statuswriter.New(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			if err := writer.Apply(t.Context(), tc.object, "owner", map[string]any{"a": 1}); err != nil {
				text = err.Error()
			}
			if got != tc.request || text != tc.want {
				t.Errorf("got request %s and error %q\nwant    %s and error %q", got, text, tc.request, tc.want)
			}
		})
	}
}
