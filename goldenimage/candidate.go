package goldenimage

import (
	"cmp"
	"slices"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// From makes the disks of a VirtualMachine that come from a DataSource of a GoldenImage come from one of its images, and returns false if there are none.
// What KubeVirt would infer from such a disk is replaced by the defaults of the GoldenImage: labels of DataSources are not on volumes.
func From(image *v1alpha1.GoldenImage, vm map[string]any, imported v1alpha1.ImportedImage) bool {
	names, disks := Names(image), map[string]bool{}
	for _, template := range machine.MapsAt(machine.MapAt(vm, "spec"), "dataVolumeTemplates") {
		spec := machine.MapAt(template, "spec")
		ref := machine.MapAt(spec, "sourceRef")
		namespace := cmp.Or(machine.StringAt(ref, "namespace"), image.Namespace)
		if ref["kind"] != kindDataSource.Kind || namespace != image.Namespace || !slices.Contains(names, machine.StringAt(ref, "name")) {
			continue
		}
		delete(spec, "sourceRef")
		spec["source"] = standsFor(image.Namespace, &imported)
		disks[machine.StringAt(machine.MapAt(template, "metadata"), "name")] = true
	}
	infer(vm, disks, "instancetype", image.Spec.Defaults.Instancetype, image.Spec.Defaults.InstancetypeKind)
	infer(vm, disks, "preference", image.Spec.Defaults.Preference, image.Spec.Defaults.PreferenceKind)
	return len(disks) > 0
}

// infer replaces what is inferred from a volume of one of the disks by a name, if there is a name.
func infer(vm map[string]any, disks map[string]bool, field, name, kind string) {
	matcher := machine.MapAt(vm, "spec", field)
	from := machine.StringAt(matcher, "inferFromVolume")
	if from == "" || name == "" {
		return
	}
	for _, volume := range machine.MapsAt(machine.MapAt(vm, "spec", "template", "spec"), "volumes") {
		if volume["name"] != from || !disks[machine.StringAt(machine.MapAt(volume, "dataVolume"), "name")] {
			continue
		}
		delete(matcher, "inferFromVolume")
		delete(matcher, "inferFromVolumeFailurePolicy")
		matcher["name"] = name
		if kind != "" {
			matcher["kind"] = kind
		}
	}
}
