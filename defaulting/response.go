package defaulting

import "encoding/json"

// Source says whose default a value is.
type Source string

// The sources of values.
const (
	// FromKubeVirt is a default of KubeVirt's own.
	FromKubeVirt Source = "kubevirt"
	// FromPreference comes from the preference of the VirtualMachine.
	FromPreference Source = "preference"
	// FromLibvirt was decided by libvirt.
	FromLibvirt Source = "libvirt"
	// FromStencil was made here, at random.
	FromStencil Source = "stencil"
)

// Response is the answer to a Request.
type Response struct {
	// VM is the VirtualMachine with its defaults.
	VM json.RawMessage `json:"vm,omitempty"`
	// Patch turns the VirtualMachine of the request into that.
	Patch []PatchOperation `json:"patch"`
	// Set are the fields that were filled, in the order of the patch.
	Set []Set `json:"set"`
	// Skipped are fields that were left empty although a default is known to exist.
	Skipped []Skipped `json:"skipped"`
	// Devices is where each device of the guest is.
	Devices []Device `json:"devices"`
	// Environment is what the answer was made with.
	Environment Environment `json:"environment"`
	// Cache says where the answer comes from.
	Cache Cache `json:"cache"`
}

// firmwareUUID is the path of what is random in most responses.
const firmwareUUID = "spec.template.spec.domain.firmware.uuid"

// Repeatable says whether a response is the one to the same request made again, and
// which UUID in it has to be another one then, if any. With MAC addresses it is not:
// they are drawn until no machine has one twice.
func (r *Response) Repeatable() (uuid string, ok bool) {
	for _, set := range r.Set {
		if set.Source != FromStencil {
			continue
		}
		if set.Path != firmwareUUID {
			return "", false
		}
		if uuid, ok = set.Value.(string); !ok {
			return "", false
		}
	}
	return uuid, true
}

// PatchOperation is one of a JSON patch (RFC 6902): add, or replace for the alias
// of a machine type.
type PatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Set is a field that was filled.
type Set struct {
	// Path is that of the field, such as
	// spec.template.spec.domain.devices.disks[0].disk.bus.
	Path   string `json:"path"`
	Value  any    `json:"value"`
	Source Source `json:"source"`
}

// Skipped is a field that was left empty, and why. A path may stand for several
// fields: disks[*].
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Device is one of the guest's PCI devices.
type Device struct {
	// Path is the field of the VirtualMachine that asks for the device, empty for
	// what KubeVirt or libvirt adds.
	Path string `json:"path,omitempty"`
	// Kind is the element in the domain: disk, interface, controller …
	Kind string `json:"kind"`
	// Model is the model of a controller.
	Model string `json:"model,omitempty"`
	// Index is the index of a controller, which is also the number of its bus.
	Index *uint `json:"index,omitempty"`
	// Address is the device's own, as 0000:01:00.0.
	Address string `json:"address"`
}

// Environment says with what an answer was made.
type Environment struct {
	// Defaulter is the version of stencil-defaulter.
	Defaulter string `json:"defaulter"`
	// Libvirt is the version of libvirt, such as 9.0.0.
	Libvirt string `json:"libvirt"`
	// QEMU is the version of QEMU, such as 7.2.22.
	QEMU string `json:"qemu"`
	// KubeVirt is the version whose behaviour is reproduced.
	KubeVirt string `json:"kubevirt"`
	// Machines are the machine types that QEMU has, by architecture. An alias is
	// followed by an equals sign and what it stands for.
	Machines map[string][]string `json:"machines,omitempty"`
}

// Cache says where an answer comes from.
type Cache string

// Where an answer can come from.
const (
	// Hit is an answer, or a layout of devices, that was known.
	Hit Cache = "hit"
	// Miss took libvirt.
	Miss Cache = "miss"
	// Unused is an answer for which nothing had to be known.
	Unused Cache = "unused"
)
