package disks

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CreatedBy is the label of the DataVolumes and claims that KubeVirt creates for a VirtualMachine. Its value is the UID of the latter.
const CreatedBy = "kubevirt.io/created-by"

// Maximum is how many disks of one VirtualMachine are checked. KubeVirt permits 256 volumes, and each of the dataVolumeTemplates has to be one of
// them.
const Maximum = 256

// Template is one of the dataVolumeTemplates of a VirtualMachine.
type Template struct {
	// Name of the DataVolume, and of the claim that CDI makes for it.
	Name string
	// Field is the path of the name in the VirtualMachine.
	Field string
}

// Templates returns the dataVolumeTemplates in the spec of a VirtualMachine, in their order, without those that have no name.
func Templates(spec map[string]any) []Template {
	var found []Template
	path := field.NewPath("spec", "dataVolumeTemplates")
	for i, entry := range list(spec, "dataVolumeTemplates") {
		if name := text(object(object(entry)["metadata"])["name"]); name != "" {
			found = append(found, Template{Name: name, Field: path.Index(i).Child("metadata", "name").String()})
		}
	}
	return found
}

// Claims returns the names of the claims that the volumes in the spec of a VirtualMachineInstance name, and for each the name of the
// first volume that does.
func Claims(spec map[string]any) map[string]string {
	found := map[string]string{}
	for _, entry := range list(spec, "volumes") {
		volume := object(entry)
		// The claim of a DataVolume has the name of the DataVolume.
		for _, claim := range []any{object(volume["dataVolume"])["name"], object(volume["persistentVolumeClaim"])["claimName"]} {
			if name := text(claim); name != "" && found[name] == "" {
				found[name] = text(volume["name"])
			}
		}
	}
	return found
}

// Own reports whether KubeVirt created a claim with these labels for the VirtualMachine with that UID.
func Own(labels map[string]string, vm types.UID) bool {
	return vm != "" && labels[CreatedBy] == string(vm)
}

// Problem describes why a claim that exists is not the disk of a VirtualMachine.
func Problem(labels map[string]string) string {
	if labels[CreatedBy] == "" {
		return fmt.Sprintf("it lacks the label %s, which KubeVirt gives to disks that it creates", CreatedBy)
	}
	return fmt.Sprintf("its label %s names another VirtualMachine", CreatedBy)
}

func list(in map[string]any, key string) []any {
	found, _ := in[key].([]any)
	return found
}

func object(value any) map[string]any {
	found, _ := value.(map[string]any)
	return found
}

func text(value any) string {
	found, _ := value.(string)
	return found
}
