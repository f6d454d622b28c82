package lint

import (
	"fmt"
	"slices"
	"strings"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// disks finds disks and volumes that do not belong together, and sources of disks without a namespace. Names are compared as they are written: what
// depends on a parameter may be anything.
func (a *advisor) disks(vm map[string]any) {
	const spec = "spec.virtualMachine.spec"
	guest := machine.MapAt(vm, "spec", "template", "spec")
	devices := machine.MapAt(guest, "domain", "devices")
	disks, volumes := named(devices["disks"]), named(guest["volumes"])
	filesystems := named(devices["filesystems"])
	for i, disk := range disks.items {
		if _, drive := disk["cdrom"]; !drive && !volumes.mayHave(disks.names[i]) {
			a.warn(RuleDiskWithoutVolume, fmt.Sprintf("%s.template.spec.domain.devices.disks[%d].name", spec, i),
				"there is no volume %s: KubeVirt denies the VirtualMachine, unless the user adds the volume", disks.names[i])
		}
	}
	for i, volume := range volumes.items {
		at := fmt.Sprintf("%s.template.spec.volumes[%d]", spec, i)
		_, dump := volume["memoryDump"]
		// Without any disks, leaving them to KubeVirt is intended.
		if !dump && len(disks.items) > 0 && !disks.mayHave(volumes.names[i]) && !filesystems.mayHave(volumes.names[i]) {
			a.warn(RuleVolumeWithoutDisk, at+".name", "there is no disk %s: KubeVirt adds one with its own settings", volumes.names[i])
		}
		claim := claimOf(volume)
		first := slices.IndexFunc(volumes.items, func(other map[string]any) bool { return claimOf(other) == claim })
		if claim != "" && first < i {
			a.warn(RuleSharedClaim, at, "volume %s has the same claim, %s: two disks of one claim lock each other out, unless both are shareable", volumes.names[first], claim)
		}
	}
	for i, one := range machine.MapsAt(machine.MapAt(vm, "spec"), "dataVolumeTemplates") {
		from := machine.MapAt(one, "spec", "sourceRef")
		if from != nil && machine.StringAt(from, "namespace") == "" {
			a.warn(RuleNoNamespace, fmt.Sprintf("%s.dataVolumeTemplates[%d].spec.sourceRef", spec, i),
				"without a namespace, KubeVirt and CDI look for %s %s in the namespace of the VirtualMachine: write the namespace, unless each namespace has its own",
				machine.StringAt(from, "kind"), machine.StringAt(from, "name"))
		}
	}
}

// list is a list of a VirtualMachine whose items have names.
type list struct {
	items []map[string]any
	names []string
	// open is set if a parameter decides about a name, or about what is in the list.
	open bool
}

func named(value any) list {
	_, whole := value.(string)
	found := list{open: whole}
	items, _ := value.([]any)
	for _, item := range items {
		object, is := item.(map[string]any)
		name := machine.StringAt(object, "name")
		found.items, found.names = append(found.items, object), append(found.names, name)
		found.open = found.open || !is || strings.Contains(name, "${")
	}
	return found
}

// mayHave reports whether an item may have this name.
func (l list) mayHave(name string) bool {
	return l.open || strings.Contains(name, "${") && len(l.items) > 0 || slices.Contains(l.names, name)
}

// claimOf returns the name of the claim that a volume writes to: that of a DataVolume is the same.
func claimOf(volume map[string]any) string {
	if name := machine.StringAt(machine.MapAt(volume, "dataVolume"), "name"); name != "" {
		return name
	}
	return machine.StringAt(machine.MapAt(volume, "persistentVolumeClaim"), "claimName")
}
