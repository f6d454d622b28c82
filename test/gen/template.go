package gen

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	templatev1beta1 "github.com/vmstencil/stencil/api/template/v1beta1"
)

// Template builds a VirtualMachineTemplate of template.kubevirt.io/v1beta1.
func Template(name string, modifiers ...Modifier) *unstructured.Unstructured {
	return build(templatev1beta1.GroupVersion.String(), "VirtualMachineTemplate", name, modifiers)
}

// Declares adds a parameter of this name, with other fields in YAML, such as "{type: int, value: '2'}".
func Declares(name string, fields ...string) Modifier {
	parameter := map[string]any{"name": name}
	for _, text := range fields {
		Merge(parameter, parse(text))
	}
	return func(template *unstructured.Unstructured) { add(template, parameter, "spec", "parameters") }
}

// Renders sets the VirtualMachine of the template, by the modifiers of VMs. An empty name leaves its metadata.name out.
func Renders(name string, modifiers ...Modifier) Modifier {
	return func(template *unstructured.Unstructured) {
		vm := VM(name, modifiers...).Object
		delete(vm, "apiVersion")
		delete(vm, "kind")
		if len(vm["metadata"].(map[string]any)) == 0 {
			delete(vm, "metadata")
		}
		set(template, vm, "spec", "virtualMachine")
	}
}
