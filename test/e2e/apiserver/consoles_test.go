package apiserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// TestOpenShiftConsole replays what the console does: it calls process with NAME and every parameter with a value, sets name, namespace, labels and
// runStrategy, and creates the VM.
func TestOpenShiftConsole(t *testing.T) {
	d := newDesk(t, "{overrides: [spec.runStrategy, metadata.annotations.description, 'metadata.labels[\"vm.openshift.io/folder\"]'], templateLabels: Accept}")
	free := desk{namespace: harness.Namespace(t, stencil.Plane, "free"), user: d.user}
	harness.Bind(t, stencil.Plane, d.user, free.namespace, "edit")
	console := func(t *testing.T, name, namespace string) *unstructured.Unstructured {
		t.Helper()
		const options = `{"apiVersion":"subresources.template.kubevirt.io/v1alpha1","kind":"ProcessOptions","parameters":{"NAME":%q,"NUMBER":"1","CORES":"1"}}`
		got := request{as: d.user, path: subresource(t, "v1alpha1", "box", "process"), contentType: "application/json", body: fmt.Sprintf(options, name)}.do(t)
		var answer struct{ VirtualMachine map[string]any }
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.code != http.StatusOK {
			t.Fatalf("%v: %d %s", err, got.code, got.body)
		}
		vm := &unstructured.Unstructured{Object: answer.VirtualMachine}
		for path, value := range map[string]string{
			"metadata/name": name, "metadata/namespace": namespace, "metadata/annotations/description": "made by hand",
			"metadata/labels/" + strings.ReplaceAll(labelKey, "/", "%"): "box", "metadata/labels/" + strings.ReplaceAll(namespaceLabelKey, "/", "%"): shop(t),
			"metadata/labels/vm.openshift.io%folder": "work", "spec/runStrategy": "Always",
		} {
			steps := strings.Split(path, "/")
			steps[len(steps)-1] = strings.ReplaceAll(steps[len(steps)-1], "%", "/")
			vm = edit(t, vm, value, steps...)
		}
		return vm
	}
	send := func(t *testing.T, namespace string, vm *unstructured.Unstructured) answer {
		t.Helper()
		raw, err := vm.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return request{as: d.user, path: "/apis/kubevirt.io/v1/namespaces/" + namespace + "/virtualmachines", contentType: "application/json", body: string(raw)}.do(t)
	}
	box := shop(t) + "/box"
	t.Run("governed", func(t *testing.T) {
		if got := send(t, d.namespace, console(t, "console-1", d.namespace)); got.code != http.StatusCreated {
			t.Fatalf("%d %s", got.code, got.body)
		}
		d.wantInstance(t, "console-1", box)
	})
	t.Run("governed, by labels", func(t *testing.T) {
		if got := send(t, d.namespace, byLabels(t, console(t, "console-2", d.namespace), shop(t), "box")); got.code != http.StatusCreated {
			t.Fatalf("%d %s", got.code, got.body)
		}
		d.wantInstance(t, "console-2", box)
	})
	t.Run("elsewhere, with changes of the user", func(t *testing.T) {
		vm := edit(t, console(t, "console-3", free.namespace), []any{}, "spec", "template", "spec", "volumes")
		if got := send(t, free.namespace, vm); got.code != http.StatusCreated {
			t.Fatalf("%d %s", got.code, got.body)
		}
		stored := free.wantInstance(t, "console-3", box)
		if volumes, _, _ := unstructured.NestedSlice(stored.Object, "spec", "template", "spec", "volumes"); len(volumes) > 0 {
			t.Errorf("a volume that the user removed is there: %v", volumes)
		}
	})
	t.Run("elsewhere, by labels, is none of Stencil's business", func(t *testing.T) {
		if got := send(t, free.namespace, byLabels(t, console(t, "console-4", free.namespace), shop(t), "box")); got.code != http.StatusCreated {
			t.Fatalf("%d %s", got.code, got.body)
		}
		if annotations := free.get(t, "console-4").GetAnnotations(); annotations[referenceKey] != "" {
			t.Errorf("%v", annotations)
		}
	})
	t.Run("forged labels", func(t *testing.T) {
		for _, tc := range []struct {
			name      string
			namespace string
			template  string
			edit      func(vm *unstructured.Unstructured) *unstructured.Unstructured
			want      string
		}{
			{name: "of a template that is not approved", namespace: shop(t), template: "crate", want: "names no template"},
			{name: "of a Template of OpenShift", namespace: "openshift", template: "rhel9-server-small", want: "names no template"},
			{name: "shortened, as those of long names", namespace: shop(t), template: "box-0123456789", want: "names no template"},
			{name: "on something else", namespace: shop(t), template: "box", want: "spec.template.spec.nodeSelector.a", edit: func(vm *unstructured.Unstructured) *unstructured.Unstructured {
				return edit(t, vm, map[string]any{"a": "b"}, "spec", "template", "spec", "nodeSelector")
			}},
			{name: "with a value that is not approved", namespace: shop(t), template: "box", want: "parameters[CORES]", edit: func(vm *unstructured.Unstructured) *unstructured.Unstructured {
				return edit(t, vm, int64(8), "spec", "template", "spec", "domain", "cpu", "cores")
			}},
		} {
			vm := byLabels(t, console(t, "attack", d.namespace), tc.namespace, tc.template)
			if tc.edit != nil {
				vm = tc.edit(vm)
			}
			if got := send(t, d.namespace, vm); got.code != http.StatusForbidden || !strings.Contains(got.body, tc.want) {
				t.Errorf("%s: %d %s", tc.name, got.code, got.body)
			}
		}
		outsider := harness.User(t, stencil.Plane, d.namespace+"-outsider", gen.Role(d.namespace, "edit"))
		vm := byLabels(t, console(t, "attack", d.namespace), shop(t), "box")
		if out := kubectl(t, outsider, gen.Manifest(vm), "create", "-f", "-"); out.Code == 0 || !strings.Contains(out.Stderr, "may not use it") {
			t.Errorf("%s%s", out.Stdout, out.Stderr)
		}
	})
}

// TestHeadlamp replays what the plugin does: it reads the template in v1alpha1, replaces ${NAME} in the JSON of the VM, and creates it in the namespace
// of the template. Its VMs have the labels that the template gives them.
func TestHeadlamp(t *testing.T) {
	space := harness.Namespace(t, stencil.Plane, "stall")
	d := desk{namespace: space, user: harness.User(t, stencil.Plane, space+"-dev", gen.Role(space, "edit"), gen.Role(space, "view"), gen.UsesTemplates(space))}
	const text = `{labels: {vm.kubevirt.io/template: pod, vm.kubevirt.io/template.namespace: %s}}`
	mustKubectl(t, gen.Manifest(gen.Template("pod", gen.Declares("NAME", "required: true"), gen.Declares("SIZE", "value: 64Mi"),
		gen.Renders("${NAME}", gen.SmallSpec(), gen.Memory("${SIZE}"), gen.Fields("metadata: "+fmt.Sprintf(text, space))))), "create", "--namespace="+space, "-f", "-")
	headlamp := func(t *testing.T, values map[string]string) answer {
		t.Helper()
		got := request{as: d.user, method: http.MethodGet, path: "/apis/template.kubevirt.io/v1alpha1/namespaces/" + space + "/virtualmachinetemplates/pod"}.do(t)
		var template struct {
			Spec struct {
				VirtualMachine json.RawMessage
				Parameters     []struct{ Name, Value string }
			}
		}
		if err := json.Unmarshal([]byte(got.body), &template); err != nil || got.code != http.StatusOK {
			t.Fatalf("%v: %d %s", err, got.code, got.body)
		}
		raw := string(template.Spec.VirtualMachine)
		for _, p := range template.Spec.Parameters {
			value := p.Value
			if given := values[p.Name]; given != "" {
				value = given
			}
			raw = strings.ReplaceAll(raw, "${"+p.Name+"}", value)
		}
		vm := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(raw), &vm.Object); err != nil {
			t.Fatal(err)
		}
		vm.SetNamespace(space)
		vm.SetAPIVersion("kubevirt.io/v1")
		vm.SetKind("VirtualMachine")
		sent, err := json.Marshal(vm.Object)
		if err != nil {
			t.Fatal(err)
		}
		return request{as: d.user, path: "/apis/kubevirt.io/v1/namespaces/" + space + "/virtualmachines", contentType: "application/json", body: string(sent)}.do(t)
	}
	if got := headlamp(t, map[string]string{"NAME": "before"}); got.code != http.StatusCreated {
		t.Fatalf("where nothing governs: %d %s", got.code, got.body)
	}
	mustKubectl(t, gen.Manifest(gen.Approval(space, gen.Governs(space), gen.Approves(space+"/pod"))), "create", "-f", "-")
	t.Cleanup(func() { mustKubectl(t, "", "delete", "templateapproval", space) })
	mustKubectl(t, "", "wait", "--for=condition=Active", "templateapproval/"+space, "--timeout=60s")
	if got := headlamp(t, map[string]string{"NAME": "ignored"}); got.code != http.StatusForbidden || !strings.Contains(got.body, "names no template") {
		t.Errorf("where labels are ignored: %d %s", got.code, got.body)
	}
	mustKubectl(t, "", "patch", "templateapproval", space, "--type=merge", "-p", `{"spec":{"templateLabels":"Accept"}}`)
	harness.Eventually(t, "labels are accepted", func() error {
		if got := headlamp(t, map[string]string{"NAME": "accepted"}); got.code != http.StatusCreated {
			return fmt.Errorf("%d %s", got.code, got.body)
		}
		return nil
	})
	d.wantInstance(t, "accepted", space+"/pod")
	if got := headlamp(t, map[string]string{"NAME": "large", "SIZE": "64Gi"}); got.code != http.StatusForbidden || !strings.Contains(got.body, "parameters[SIZE]") {
		t.Errorf("a value that is not approved: %d %s", got.code, got.body)
	}
}

// TestVirtctl19 replays what virtctl 1.9 does: it calls process in v1beta1, and prints the VM by KubeVirt's type, which has empty fields that the
// template has not.
func TestVirtctl19(t *testing.T) {
	d := newDesk(t, "{}")
	box := shop(t) + "/box"
	const options = `{"kind":"ProcessOptions","apiVersion":"subresources.template.kubevirt.io/v1beta1","parameters":{"NAME":"printed","CORES":"2"}}`
	got := request{as: d.user, path: subresource(t, "v1beta1", "box", "process"), contentType: "application/json", accept: "application/json, */*", body: options}.do(t)
	var answer struct{ VirtualMachine virtv1.VirtualMachine }
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.code != http.StatusOK {
		t.Fatalf("%v: %d %s", err, got.code, got.body)
	}
	printed, err := yaml.Marshal(answer.VirtualMachine)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(printed), "status: {}") {
		t.Errorf("it has no empty fields: %s", printed)
	}
	for _, want := range []string{"created", "unchanged"} {
		if out := kubectl(t, d.user, string(printed), "apply", "--namespace="+d.namespace, "-f", "-"); out.Code != 0 || !strings.Contains(out.Stdout, want) {
			t.Fatalf("want %s: %s%s", want, out.Stdout, out.Stderr)
		}
	}
	d.wantInstance(t, "printed", box)
}

// TestKubernetesMCPServer replays what the server does: it calls create in v1beta1 with options of its own kind.
func TestKubernetesMCPServer(t *testing.T) {
	space := shop(t)
	approval := gen.Manifest(gen.Approval(space, gen.Governs(space), gen.Approves(space+"/box"), gen.Spec("{parameters: [{name: CORES, maximum: 4}]}")))
	mustKubectl(t, approval, "create", "-f", "-")
	t.Cleanup(func() { mustKubectl(t, "", "delete", "templateapproval", space) })
	mustKubectl(t, "", "wait", "--for=condition=Active", "templateapproval/"+space, "--timeout=60s")
	create := func(cores string) answer {
		const options = `{"apiVersion":"subresources.template.kubevirt.io/v1beta1","kind":"CreateOptions","parameters":{"CORES":%q,"NAME":"asked"}}`
		return request{as: ada, path: subresource(t, "v1beta1", "box", "create"), contentType: "application/json", accept: "application/json", body: fmt.Sprintf(options, cores)}.do(t)
	}
	if got := create("8"); got.code != http.StatusForbidden || !strings.Contains(got.body, "must be at most 4") {
		t.Errorf("a value that is not approved: %d %s", got.code, got.body)
	}
	if p := decode(t, create("4")); p.VirtualMachine.Metadata.Annotations[referenceKey] != space+"/box" || p.VirtualMachine.Metadata.Annotations["template.kubevirt.io/created-by"] != ada.Name {
		t.Errorf("%+v", p.VirtualMachine.Metadata)
	}
}
