package gen

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	templateapi "github.com/vmstencil/stencil/api/template"
)

// VM builds a VirtualMachine of kubevirt.io/v1. It is unstructured, because a typed VirtualMachine always has a spec and a status: one
// from a template may have neither. An empty name leaves metadata.name out.
func VM(name string, modifiers ...Modifier) *unstructured.Unstructured {
	return build("kubevirt.io/v1", "VirtualMachine", name, modifiers)
}

// FromTemplate refers to a template, as NAMESPACE/NAME, or as NAME for one in the namespace of the VM.
func FromTemplate(reference string) Modifier {
	return Annotation(templateapi.AnnotationTemplateRef, reference)
}

// Parameter sets a parameter of the template.
func Parameter(key, value string) Modifier {
	return Annotation(templateapi.AnnotationParameterPrefix+key, value)
}

// Parameters sets several parameters of the template.
func Parameters(values map[string]string) Modifier {
	return func(vm *unstructured.Unstructured) {
		for key, value := range values {
			Parameter(key, value)(vm)
		}
	}
}

// RunStrategy sets spec.runStrategy.
func RunStrategy(strategy string) Modifier {
	return func(vm *unstructured.Unstructured) { set(vm, strategy, "spec", "runStrategy") }
}

// Memory sets the memory of the guest, such as 64Mi.
func Memory(quantity string) Modifier {
	return func(vm *unstructured.Unstructured) {
		set(vm, quantity, "spec", "template", "spec", "domain", "memory", "guest")
	}
}

// LeastSpec sets the least spec that the definition of VirtualMachine accepts: halted, no memory, no disk.
func LeastSpec() Modifier {
	return func(vm *unstructured.Unstructured) {
		RunStrategy("Halted")(vm)
		set(vm, map[string]any{}, "spec", "template", "spec", "domain", "devices")
	}
}

// SmallSpec sets the smallest spec that KubeVirt admits without a template: halted, 64 MiB, no disk.
func SmallSpec() Modifier {
	return func(vm *unstructured.Unstructured) {
		LeastSpec()(vm)
		Memory("64Mi")(vm)
	}
}

// ContainerDisk adds a volume with this image, and a virtio disk for it.
func ContainerDisk(name, image string) Modifier {
	return disk(name, "containerDisk", map[string]any{"image": image})
}

// CloudInit adds a volume with this user data, and a virtio disk for it.
func CloudInit(name, userData string) Modifier {
	return disk(name, "cloudInitNoCloud", map[string]any{"userData": userData})
}

// CloudInitSecret adds a volume with the user data of a Secret, and a virtio disk for it.
func CloudInitSecret(name, secret string) Modifier {
	return disk(name, "cloudInitNoCloud", map[string]any{"secretRef": map[string]any{"name": secret}})
}

// DataVolumeTemplate adds a template of an empty DataVolume of this size, such as 1Gi, a volume with it and a virtio disk.
func DataVolumeTemplate(name, size string) Modifier {
	return DataVolumeDisk(name, name, "{source: {blank: {}}, storage: {resources: {requests: {storage: "+size+"}}}}")
}

// DataVolumeDisk adds a template of a DataVolume of 1Gi, with other fields of its spec in YAML, such as "{source: {blank: {}}}", a volume with it
// and a virtio disk.
func DataVolumeDisk(name, dataVolume, fields string) Modifier {
	return func(vm *unstructured.Unstructured) {
		spec := parse("storage: {resources: {requests: {storage: 1Gi}}}")
		Merge(spec, parse(fields))
		add(vm, map[string]any{"metadata": map[string]any{"name": dataVolume}, "spec": spec}, "spec", "dataVolumeTemplates")
		disk(name, "dataVolume", map[string]any{"name": dataVolume})(vm)
	}
}

// disk adds a volume with a source, and a virtio disk of the same name.
func disk(name, source string, fields map[string]any) Modifier {
	return func(vm *unstructured.Unstructured) {
		add(vm, map[string]any{"name": name, source: fields}, "spec", "template", "spec", "volumes")
		add(vm, map[string]any{"name": name, "disk": map[string]any{"bus": "virtio"}},
			"spec", "template", "spec", "domain", "devices", "disks")
	}
}
