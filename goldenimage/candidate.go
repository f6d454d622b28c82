package goldenimage

import (
	"slices"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// From makes the disks of a VirtualMachine that come from a DataSource of a GoldenImage come from one of its images, and returns false if there are none.
// What KubeVirt would infer from such a disk is replaced by the defaults of the GoldenImage: labels of DataSources are not on volumes.
func From(image *v1alpha1.GoldenImage, vm map[string]any, imported v1alpha1.ImportedImage) bool {
	volume, names := map[string]any{"namespace": image.Namespace, "name": imported.Volume}, Names(image)
	disks := map[string]bool{}
	templates, _ := mapAt(vm, "spec")["dataVolumeTemplates"].([]any)
	for _, one := range templates {
		template, _ := one.(map[string]any)
		spec := mapAt(template, "spec")
		ref := mapAt(spec, "sourceRef")
		namespace, given := ref["namespace"].(string)
		name, _ := ref["name"].(string)
		if ref["kind"] != kindDataSource.Kind || given && namespace != image.Namespace || !slices.Contains(names, name) {
			continue
		}
		delete(spec, "sourceRef")
		kind := "pvc"
		if imported.Snapshot {
			kind = "snapshot"
		}
		spec["source"] = map[string]any{kind: volume}
		disk, _ := mapAt(template, "metadata")["name"].(string)
		disks[disk] = true
	}
	infer(vm, disks, "instancetype", image.Spec.Defaults.Instancetype, image.Spec.Defaults.InstancetypeKind)
	infer(vm, disks, "preference", image.Spec.Defaults.Preference, image.Spec.Defaults.PreferenceKind)
	return len(disks) > 0
}

// infer replaces what is inferred from a volume of one of the disks by a name, if there is a name.
func infer(vm map[string]any, disks map[string]bool, field, name, kind string) {
	matcher := mapAt(vm, "spec", field)
	from, _ := matcher["inferFromVolume"].(string)
	if from == "" || name == "" {
		return
	}
	volumes, _ := mapAt(vm, "spec", "template", "spec")["volumes"].([]any)
	for _, one := range volumes {
		volume, _ := one.(map[string]any)
		disk, _ := mapAt(volume, "dataVolume")["name"].(string)
		if volume["name"] != from || !disks[disk] {
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

// mapAt returns the object at a path, nil if there is none.
func mapAt(object map[string]any, path ...string) map[string]any {
	for _, key := range path {
		object, _ = object[key].(map[string]any)
	}
	return object
}
