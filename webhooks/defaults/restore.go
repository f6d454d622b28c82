package defaults

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/internal/guestdefaults"
	"github.com/vmstencil/stencil/internal/mutation"
	"github.com/vmstencil/stencil/internal/pinned"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// restoreStored restores values that a new version of a VM omits and the stored one has, where applying a manifest again would
// lose them: the version of a machine type, the UUID of the firmware, and in lists, which are replaced as a whole,
// the fields that identify a device to the guest. It changes no user-specified value except the alias of a machine
// type, and nothing in a device that was replaced by another one.
func restoreStored(stored, object map[string]any, p *mutation.Patch) {
	before, after := machine.MapAt(stored, guestdefaults.Domain...), machine.MapAt(object, guestdefaults.Domain...)
	if before == nil || after == nil {
		return
	}
	restoreMachineType(before, after, p)
	if uuid := machine.StringAt(machine.MapAt(before, "firmware"), "uuid"); uuid != "" {
		if firmware := machine.MapAt(after, "firmware"); firmware == nil {
			p.Put(after, guestdefaults.Domain, "firmware", map[string]any{"uuid": uuid})
		} else if machine.StringAt(firmware, "uuid") == "" {
			p.Put(firmware, guestdefaults.Domain.Child("firmware"), "uuid", uuid)
		}
	}
	devices := guestdefaults.Domain.Child("devices")
	each(before, after, "disks", func(stored, disk map[string]any, index int) {
		restoreDisk(stored, disk, devices.Child("disks").Item(index), p)
	})
	each(before, after, "interfaces", func(stored, nic map[string]any, index int) {
		restoreInterface(stored, nic, devices.Child("interfaces").Item(index), p)
	})
}

func restoreMachineType(before, after map[string]any, p *mutation.Patch) {
	stored := machine.StringAt(machine.MapAt(before, "machine"), "type")
	described := machine.MapAt(after, "machine")
	requested := machine.StringAt(described, "type")
	switch {
	case stored == "" || stored == requested || requested != "" && !pinned.VersionOf(stored, requested):
	case described == nil:
		p.Put(after, guestdefaults.Domain, "machine", map[string]any{"type": stored})
	default:
		p.Put(described, guestdefaults.Domain.Child("machine"), "type", stored)
	}
}

// targets are the members of a disk that define its device type.
var targets = []string{"disk", "cdrom", "lun"}

func restoreDisk(stored, disk map[string]any, at mutation.Pointer, p *mutation.Patch) {
	kind := only(stored, targets)
	if kind == "" {
		return
	}
	if only(disk, targets) == "" {
		// The manifest has no device type, so the stored one is a default.
		p.Put(disk, at, kind, runtime.DeepCopyJSONValue(stored[kind]))
		return
	}
	before, after := machine.MapAt(stored, kind), machine.MapAt(disk, kind)
	if before == nil || after == nil {
		return
	}
	restore(before, after, at.Child(kind), p, "bus")
	if machine.StringAt(before, "bus") != machine.StringAt(after, "bus") {
		return
	}
	restore(before, after, at.Child(kind), p, "pciAddress", "readonly", "tray")
}

// sriov is the binding of an interface that is a device of the host.
const sriov = "sriov"

func restoreInterface(stored, nic map[string]any, at mutation.Pointer, p *mutation.Patch) {
	_, was := stored[sriov]
	if _, is := nic[sriov]; is != was {
		return
	}
	restore(stored, nic, at, p, "model")
	if machine.StringAt(stored, "model") == machine.StringAt(nic, "model") {
		restore(stored, nic, at, p, "pciAddress", "macAddress")
	}
}

// restore sets members that are missing or empty to their stored values.
func restore(stored, object map[string]any, at mutation.Pointer, p *mutation.Patch, keys ...string) {
	for _, key := range keys {
		if value := stored[key]; value != nil && value != "" && (object[key] == nil || object[key] == "") {
			p.Put(object, at, key, value)
		}
	}
}

// each visits the devices of a list that have the same name as a stored device.
func each(before, after map[string]any, list string, visit func(stored, item map[string]any, index int)) {
	byName := map[string]map[string]any{}
	items, _ := machine.MapAt(before, "devices")[list].([]any)
	for _, item := range items {
		if device, ok := item.(map[string]any); ok {
			byName[machine.StringAt(device, "name")] = device
		}
	}
	items, _ = machine.MapAt(after, "devices")[list].([]any)
	for i, item := range items {
		device, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if stored := byName[machine.StringAt(device, "name")]; stored != nil {
			visit(stored, device, i)
		}
	}
}

// only returns the first of the keys that an object has, or "" if it has none.
func only(object map[string]any, keys []string) string {
	for _, key := range keys {
		if object[key] != nil {
			return key
		}
	}
	return ""
}
