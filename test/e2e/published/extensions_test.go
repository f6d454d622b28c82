package published_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	published "kubevirt.io/virt-template-api/core/v1alpha1"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template/extensions"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// extended is a template with fields that the published API lacks.
const extended = `{"apiVersion":"template.kubevirt.io/v1beta1","kind":"VirtualMachineTemplate","metadata":{"name":"extended"},"spec":{
	"parameters":[{"name":"NAME","pattern":"[a-z]{1,9}"},
		{"name":"PASSWORD","generate":"expression","from":"[a-z0-9]{9}","sensitive":true},
		{"name":"CORES","value":"1","type":"int","minimum":0,"maximum":4}],
	"objectLabels":{"team":"shop"},
	"virtualMachine":{"metadata":{"name":"${NAME}"},"spec":{"runStrategy":"Halted","template":{"spec":{
		"domain":{"cpu":{"cores":"${{CORES}}"},"devices":{"disks":[{"name":"init","disk":{}}]}},
		"volumes":[{"name":"init","cloudInitNoCloud":{"userData":"password: ${PASSWORD|yaml}"}}]}}}}}}`

// withoutExtensions is a manifest as a client of the published API sends it.
func withoutExtensions(t *testing.T, change func(*published.VirtualMachineTemplate), manifest string) string {
	t.Helper()
	object := &published.VirtualMachineTemplate{}
	if err := json.Unmarshal([]byte(manifest), object); err != nil {
		t.Fatal(err)
	}
	change(object)
	sent, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sent, []byte(`"objectLabels":`)) {
		t.Fatalf("it has extensions: %s", sent)
	}
	return string(sent)
}

// put replaces the template as a typed client does, and returns the warnings.
func put(t *testing.T, space, manifest string) (warnings string) {
	t.Helper()
	config := stage.Plane.AdminConfig()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	url := config.Host + "/apis/template.kubevirt.io/v1alpha1/namespaces/" + space + "/virtualmachinetemplates/extended"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(manifest))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", response.Status, body, err)
	}
	return strings.Join(response.Header.Values("Warning"), "\n")
}

// wantExtensions requires the extensions of the constant in a stored template, and its annotation to hold them.
func wantExtensions(t *testing.T, space string) {
	t.Helper()
	of := func(manifest string) (extensions.Extensions, string) {
		object, err := extensions.Read([]byte(manifest))
		if err != nil {
			t.Fatal(err)
		}
		return extensions.Extract(object.Spec), object.Metadata.Annotations[contract.AnnotationExtensions]
	}
	want, _ := of(extended)
	got, annotation := of(must(t, "", "get", "vmt", "extended", "-n", space, "-o", "json"))
	held, err := extensions.Decode(annotation)
	if diff := cmp.Diff([]extensions.Extensions{want, want}, []extensions.Extensions{got, held}); diff != "" || err != nil {
		t.Errorf("%v; the template and its annotation (-want +got):\n%s", err, diff)
	}
}

// TestPublishedFields compares the list of published fields with the published types.
func TestPublishedFields(t *testing.T) {
	for _, tc := range []struct {
		of   reflect.Type
		want []string
	}{
		{reflect.TypeFor[published.VirtualMachineTemplateSpec](), extensions.PublishedTemplate()},
		{reflect.TypeFor[published.Parameter](), extensions.PublishedParameter()},
	} {
		var names []string
		for field := range tc.of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
		}
		if diff := cmp.Diff(tc.want, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.of, diff)
		}
	}
}

// TestExtensionsSurviveClientsOfThePublishedAPI writes a template with clients that do not have its fields.
func TestExtensionsSurviveClientsOfThePublishedAPI(t *testing.T) {
	space := harness.Namespace(t, stage.Plane, "extensions")
	const restored = "fields that the published API lacks were restored: "
	get := func(path string) string { return must(t, "", "get", "vmt", "extended", "-n", space, "-o", path) }
	must(t, extended, "apply", "-n", space, "-f", "-")
	wantExtensions(t, space)

	t.Run("a second apply changes nothing, client-side and server-side", func(t *testing.T) {
		before := get("jsonpath={.metadata.resourceVersion}")
		must(t, extended, "apply", "-n", space, "-f", "-")
		if after := get("jsonpath={.metadata.resourceVersion}"); after != before {
			t.Errorf("a client-side apply has changed %s to %s", before, after)
		}
		must(t, extended, "apply", "--server-side", "--field-manager=gitops", "-n", space, "-f", "-")
		before = get("jsonpath={.metadata.resourceVersion}")
		must(t, extended, "apply", "--server-side", "--field-manager=gitops", "-n", space, "-f", "-")
		if after := get("jsonpath={.metadata.resourceVersion}"); after != before {
			t.Errorf("a server-side apply has changed %s to %s", before, after)
		}
		wantExtensions(t, space)
	})
	t.Run("a typed client puts what it has read", func(t *testing.T) {
		change := func(o *published.VirtualMachineTemplate) {
			o.Spec.Message, o.APIVersion = "changed", "template.kubevirt.io/v1alpha1"
		}
		sent := withoutExtensions(t, change, get("json"))
		if warnings := put(t, space, sent); !strings.Contains(warnings, restored+"spec.objectLabels") {
			t.Errorf("warnings: %s", warnings)
		}
		if message := get("jsonpath={.spec.message}"); message != "changed" {
			t.Errorf("its own change is lost: %q", message)
		}
		wantExtensions(t, space)
		must(t, extended, "apply", "--server-side", "--field-manager=gitops", "-n", space, "-f", "-")
	})
	t.Run("KubeVirt's exporter, and an import of what it makes", func(t *testing.T) {
		tools, err := controlplane.Tools(t.Context(), "kubevirt-exporter-1.9")
		if err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), tools["kubevirt-exporter-1.9"])
		command.Stdin, command.Stderr = strings.NewReader(get("json")), os.Stderr
		exported, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(exported, []byte(`"objectLabels":{`)) {
			t.Fatalf("the exporter keeps the fields, so that this test shows nothing: %s", exported)
		}
		other := harness.Namespace(t, stage.Plane, "imported")
		if got := harness.Must(t, stage.Plane, nil, string(exported), "create", "-n", other, "-f", "-"); !strings.Contains(got.Stderr, "Warning: "+restored) {
			t.Errorf("no warning: %s", got.Stderr)
		}
		wantExtensions(t, other)
	})
	t.Run("virtctl receives the denial of a value", func(t *testing.T) {
		tools, err := controlplane.Tools(t.Context(), "virtctl")
		if err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), tools["virtctl"], "template", "process", "extended", "-n", space, "-p", "NAME=Upper")
		command.Env = append(os.Environ(), "KUBECONFIG="+stage.Plane.Kubeconfig())
		var exit *exec.ExitError
		if out, err := command.CombinedOutput(); !errors.As(err, &exit) || !strings.Contains(string(out), "parameters[NAME]") {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("a loss is denied where an approval names the template", func(t *testing.T) {
		clear := func(o *published.VirtualMachineTemplate) { o.Annotations = nil }
		must(t, gen.Manifest(gen.Approval(space, gen.Governs(space), gen.Approves(space+"/extended"))), "create", "-f", "-")
		t.Cleanup(func() { must(t, "", "delete", "templateapproval", space) })
		harness.Eventually(t, "the approval is enforced", func() error {
			got := kubectl(t, withoutExtensions(t, clear, get("json")), "replace", "--dry-run=server", "-n", space, "-f", "-")
			if got.Code == 0 || !strings.Contains(got.Stderr, "TemplateApproval "+space+" names the template: fields that the published API lacks are removed") {
				return harness.Complaint(got.Stdout + got.Stderr)
			}
			return nil
		})
		wantExtensions(t, space)
	})
	t.Run("a user drops them", func(t *testing.T) {
		drop := func(o *published.VirtualMachineTemplate) {
			o.Annotations[contract.AnnotationDropExtensions] = "true"
			o.Annotations[contract.AnnotationExtensions] = get(`jsonpath={.metadata.annotations.template\.kubevirt\.io/extensions}`)
		}
		must(t, withoutExtensions(t, drop, get("json")), "replace", "-n", space, "-f", "-")
		var stored v1beta1.VirtualMachineTemplate
		if err := json.Unmarshal([]byte(get("json")), &stored); err != nil {
			t.Fatal(err)
		}
		if _, found := stored.Annotations[contract.AnnotationExtensions]; found || stored.Spec.ObjectLabels != nil || stored.Spec.Parameters[1].Sensitive {
			t.Errorf("stored %+v", stored)
		}
	})
}
