package gen

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	templateapi "github.com/vmstencil/stencil/api/template"
)

// VMModifier changes a VirtualMachine that is being built.
type VMModifier func(vm *unstructured.Unstructured)

// VM builds a VirtualMachine of kubevirt.io/v1. It is unstructured, because a typed VirtualMachine always has a spec and a status: one
// from a template may have neither. An empty name leaves metadata.name out.
func VM(name string, modifiers ...VMModifier) *unstructured.Unstructured {
	vm := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": map[string]any{},
	}}
	if name != "" {
		vm.SetName(name)
	}
	for _, modify := range modifiers {
		modify(vm)
	}
	return vm
}

// APIVersion replaces the API version, such as kubevirt.io/v1alpha3.
func APIVersion(apiVersion string) VMModifier {
	return func(vm *unstructured.Unstructured) { vm.SetAPIVersion(apiVersion) }
}

// InNamespace sets the namespace.
func InNamespace(namespace string) VMModifier {
	return func(vm *unstructured.Unstructured) { vm.SetNamespace(namespace) }
}

// GenerateName sets the prefix from which the API server makes a name.
func GenerateName(prefix string) VMModifier {
	return func(vm *unstructured.Unstructured) { vm.SetGenerateName(prefix) }
}

// Label adds a label.
func Label(key, value string) VMModifier {
	return func(vm *unstructured.Unstructured) { set(vm, value, "metadata", "labels", key) }
}

// Annotation adds an annotation.
func Annotation(key, value string) VMModifier {
	return func(vm *unstructured.Unstructured) { set(vm, value, "metadata", "annotations", key) }
}

// FromTemplate refers to a template, as NAMESPACE/NAME, or as NAME for one in the namespace of the VM.
func FromTemplate(reference string) VMModifier {
	return Annotation(templateapi.AnnotationTemplateRef, reference)
}

// Parameter sets a parameter of the template.
func Parameter(key, value string) VMModifier {
	return Annotation(templateapi.AnnotationParameterPrefix+key, value)
}

// Parameters sets several parameters of the template.
func Parameters(values map[string]string) VMModifier {
	return func(vm *unstructured.Unstructured) {
		for key, value := range values {
			Parameter(key, value)(vm)
		}
	}
}

// RunStrategy sets spec.runStrategy.
func RunStrategy(strategy string) VMModifier {
	return func(vm *unstructured.Unstructured) { set(vm, strategy, "spec", "runStrategy") }
}

// Memory sets the memory of the guest, such as 64Mi.
func Memory(quantity string) VMModifier {
	return func(vm *unstructured.Unstructured) {
		set(vm, quantity, "spec", "template", "spec", "domain", "memory", "guest")
	}
}

// SmallSpec sets the smallest spec that KubeVirt admits without a template: halted, 64 MiB, no disk.
func SmallSpec() VMModifier {
	return func(vm *unstructured.Unstructured) {
		RunStrategy("Halted")(vm)
		Memory("64Mi")(vm)
		set(vm, map[string]any{}, "spec", "template", "spec", "domain", "devices")
	}
}

// ContainerDisk adds a volume with this image, and a virtio disk for it.
func ContainerDisk(name, image string) VMModifier {
	return disk(name, "containerDisk", map[string]any{"image": image})
}

// CloudInit adds a volume with this user data, and a virtio disk for it.
func CloudInit(name, userData string) VMModifier {
	return disk(name, "cloudInitNoCloud", map[string]any{"userData": userData})
}

// DataVolumeTemplate adds a template of an empty DataVolume of this size, such as 1Gi, a volume with it and a virtio disk.
func DataVolumeTemplate(name, size string) VMModifier {
	return func(vm *unstructured.Unstructured) {
		add(vm, map[string]any{
			"metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"source":  map[string]any{"blank": map[string]any{}},
				"storage": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": size}}},
			},
		}, "spec", "dataVolumeTemplates")
		disk(name, "dataVolume", map[string]any{"name": name})(vm)
	}
}

// disk adds a volume with a source, and a virtio disk of the same name.
func disk(name, source string, fields map[string]any) VMModifier {
	return func(vm *unstructured.Unstructured) {
		add(vm, map[string]any{"name": name, source: fields}, "spec", "template", "spec", "volumes")
		add(vm, map[string]any{"name": name, "disk": map[string]any{"bus": "virtio"}},
			"spec", "template", "spec", "domain", "devices", "disks")
	}
}
