package audit_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
)

var vmResource = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}

// small is the manifest of a template with two parameters.
func small(namespace, name string, cores int) string {
	spec := fmt.Sprintf("template: {spec: {domain: {cpu: {cores: %d}}, volumes: [{name: seed, cloudInitNoCloud: {userData: 'password: ${PASSWORD}'}}]}}", cores)
	return gen.Manifest(gen.Template(name, gen.InNamespace(namespace), gen.Label("tier", "gold"), gen.Declares("MEMORY", "value: 1Gi"),
		gen.Declares("PASSWORD", "{sensitive: true, generate: expression, from: '[a-z]{8}'}"), gen.Renders("", gen.LeastSpec(), gen.Memory("${MEMORY}"), gen.Spec(spec))))
}

// rendered returns a VirtualMachine as the render webhook would have stored it.
func rendered(t *testing.T, plane *controlplane.Plane, namespace, name, from string, values map[string]string) *unstructured.Unstructured {
	t.Helper()
	at, called, _ := strings.Cut(from, "/")
	object := &v1beta1.VirtualMachineTemplate{}
	if err := yaml.Unmarshal([]byte(own(t, plane, "", "get", "virtualmachinetemplate", called, "--namespace", at, "-o", "yaml")), object); err != nil {
		t.Fatal(err)
	}
	compiled, err := template.Compile(object)
	if err != nil {
		t.Fatal(err)
	}
	vm := &unstructured.Unstructured{}
	if err := json.Unmarshal(fixture.Render(t, compiled, values).JSON(), &vm.Object); err != nil {
		t.Fatal(err)
	}
	vm.SetNamespace(namespace)
	vm.SetName(name)
	record := machine.Record{Namespace: at, Name: called, UID: object.UID, Generation: object.Generation, Digest: compiled.Digest()}
	vm.SetLabels(record.Labels())
	annotations := map[string]string{contract.AnnotationTemplateRef: from, contract.AnnotationRendered: record.String()}
	for key, value := range values {
		annotations[contract.AnnotationParameterPrefix+key] = value
	}
	vm.SetAnnotations(annotations)
	return vm
}

// set changes a field of a VirtualMachine.
func set(t *testing.T, vm *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	t.Helper()
	if err := unstructured.SetNestedField(vm.Object, value, path...); err != nil {
		t.Fatal(err)
	}
	return vm
}

// store creates VirtualMachines as the owner. They are not evaluated: no webhook is registered, and their namespaces are not governed yet.
func store(t *testing.T, plane *controlplane.Plane, vms ...*unstructured.Unstructured) {
	t.Helper()
	client, err := dynamic.NewForConfig(owner.Config())
	if err != nil {
		t.Fatal(err)
	}
	work := make(chan *unstructured.Unstructured)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for vm := range work {
				if _, err := client.Resource(vmResource).Namespace(vm.GetNamespace()).Create(t.Context(), vm, metav1.CreateOptions{}); err != nil {
					t.Errorf("storing %s: %v", vm.GetName(), err)
				}
			}
		})
	}
	for _, vm := range vms {
		work <- vm
	}
	close(work)
	group.Wait()
}
