package defaulting

import "encoding/json"

// Source is the origin of a default.
type Source string

// The sources of values.
const (
	// FromKubeVirt is a default of KubeVirt.
	FromKubeVirt Source = "kubevirt"
	// FromPreference is set by the preference of the VirtualMachine.
	FromPreference Source = "preference"
	// FromLibvirt is decided by libvirt.
	FromLibvirt Source = "libvirt"
	// FromStencil is generated at random by the defaulter.
	FromStencil Source = "stencil"
)

// Response is the answer to a Request.
type Response struct {
	// VM is the VirtualMachine with its defaults.
	VM json.RawMessage `json:"vm,omitempty"`
	// Patch converts the VirtualMachine of the request to VM.
	Patch []PatchOperation `json:"patch"`
	// Set are the fields that were filled, in the order of the patch.
	Set []Set `json:"set"`
	// Skipped are fields that were left empty although a default exists.
	Skipped []Skipped `json:"skipped"`
	// Devices are the guest's devices with their addresses.
	Devices []Device `json:"devices"`
	// Environment is the versions with which the response was computed.
	Environment Environment `json:"environment"`
	// Cache is the origin of the response.
	Cache Cache `json:"cache"`
}

// firmwareUUID is the path of the field that is random in most responses.
const firmwareUUID = "spec.template.spec.domain.firmware.uuid"

// Repeatable reports whether the response also answers an identical request, and returns the
// UUID in it that must then be replaced, if any. A response with generated MAC addresses is not
// repeatable: they are drawn until no other VM has them.
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

// PatchOperation is an operation of a JSON patch (RFC 6902): add, or replace for the alias of a
// machine type.
type PatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Set is a field that was filled.
type Set struct {
	// Path is the path of the field, such as
	// spec.template.spec.domain.devices.disks[0].disk.bus.
	Path   string `json:"path"`
	Value  any    `json:"value"`
	Source Source `json:"source"`
}

// RejectedByLibvirt begins the reason of a Skipped for a VM that libvirt cannot define, such as one of
// an architecture without an emulator.
const RejectedByLibvirt = "libvirt rejects the VM: "

// Skipped is a field that was left empty, and the reason. A path may stand for several fields:
// disks[*].
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Device is one of the guest's PCI devices.
type Device struct {
	// Path is the field of the VirtualMachine that requests the device. It is empty for a
	// device that KubeVirt or libvirt adds.
	Path string `json:"path,omitempty"`
	// Kind is the element in the domain, such as disk, interface or controller.
	Kind string `json:"kind"`
	// Model is the model of a controller.
	Model string `json:"model,omitempty"`
	// Index is the index of a controller, which is also the number of its bus.
	Index *uint `json:"index,omitempty"`
	// Address is the device's own, as 0000:01:00.0.
	Address string `json:"address"`
}

// Environment is the versions with which a response was computed.
type Environment struct {
	// Defaulter is the version of stencil-defaulter.
	Defaulter string `json:"defaulter"`
	// Libvirt is the version of libvirt, such as 9.0.0.
	Libvirt string `json:"libvirt"`
	// QEMU is the version of QEMU, such as 7.2.22.
	QEMU string `json:"qemu"`
	// KubeVirt is the KubeVirt version that is reproduced; two, separated by a comma, if the VM may be started by either.
	KubeVirt string `json:"kubevirt"`
	// Image is the KubeVirt version whose virt-launcher has the same libvirt and QEMU. Empty if it is unknown.
	Image string `json:"image,omitempty"`
	// Reproduces are all KubeVirt versions that can be reproduced. It is empty in a Response.
	Reproduces []string `json:"reproduces,omitempty"`
	// Machines are QEMU's machine types by architecture. An alias is followed by an equals sign
	// and the version that it stands for.
	Machines map[string][]string `json:"machines,omitempty"`
}

// Cache is the origin of a response.
type Cache string

// The origins of a response.
const (
	// Hit means that the response or the layout of its devices was cached.
	Hit Cache = "hit"
	// Miss means that libvirt was called.
	Miss Cache = "miss"
	// Unused means that no cached value was needed.
	Unused Cache = "unused"
)
