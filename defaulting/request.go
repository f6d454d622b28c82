package defaulting

import (
	"encoding/json"

	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"
)

// Operation is the operation on the VirtualMachine.
type Operation string

// The operations. The empty string means Create.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
)

// Request requests the defaults of one VirtualMachine.
type Request struct {
	// VM is the VirtualMachine as JSON. Unknown fields are preserved.
	VM json.RawMessage `json:"vm"`
	// OldVM is the stored VirtualMachine, on update.
	OldVM json.RawMessage `json:"oldVM,omitempty"`
	// Operation is CREATE by default.
	Operation Operation `json:"operation,omitempty"`
	// DryRun means that nothing will be stored. The response is the same.
	DryRun bool `json:"dryRun,omitempty"`
	// Running means that a VirtualMachineInstance exists. Nothing is written then for devices
	// that it already has.
	Running bool `json:"running,omitempty"`
	// Instancetype is the spec of the instance type that the VirtualMachine references. If it
	// references one and this is absent, addresses are not written.
	Instancetype *instancetypev1beta1.VirtualMachineInstancetypeSpec `json:"instancetype,omitempty"`
	// Preference is the spec of the preference that the VirtualMachine references. If it
	// references one and this is absent, only the machine type is written.
	Preference *instancetypev1beta1.VirtualMachinePreferenceSpec `json:"preference,omitempty"`
	// Policy selects the defaults that are written.
	Policy Policy `json:"policy,omitzero"`
	// Cluster is the relevant part of KubeVirt's configuration.
	Cluster Cluster `json:"cluster,omitzero"`
	// PatchOnly omits the VirtualMachine from the response, which then has only the patch.
	PatchOnly bool `json:"patchOnly,omitempty"`
}

// MachineTypePolicy determines how an alias such as q35 is handled.
type MachineTypePolicy string

// The machine type policies. The empty string means MachineTypePin.
const (
	// MachineTypePin replaces an alias by the version that it stands for.
	MachineTypePin MachineTypePolicy = "pin"
	// MachineTypeKeep does not change it.
	MachineTypeKeep MachineTypePolicy = "keep"
)

// MACPolicy determines how an interface without a MAC address is handled.
type MACPolicy string

// The MAC address policies. The empty string means MACNever.
const (
	// MACNever leaves the address to KubeVirt or to a pool manager.
	MACNever MACPolicy = "never"
	// MACGenerate generates a random, locally administered address with 46 random bits.
	MACGenerate MACPolicy = "generate"
)

// Policy selects the defaults that are written. Each field has its own default.
type Policy struct {
	// MachineType is pin or keep, pin by default.
	MachineType MachineTypePolicy `json:"machineType,omitempty"`
	// PCIAddress writes addresses of virtio disks and interfaces. True by default.
	PCIAddress *bool `json:"pciAddress,omitempty"`
	// FirmwareUUID writes a random UUID on creation. True by default.
	FirmwareUUID *bool `json:"firmwareUUID,omitempty"`
	// MAC is never or generate, never by default.
	MAC MACPolicy `json:"mac,omitempty"`
	// CPU writes the CPU topology, never with an instance type. True by default.
	CPU *bool `json:"cpu,omitempty"`
	// Memory writes the guest's memory, never with an instance type. True by default.
	Memory *bool `json:"memory,omitempty"`
}

// Cluster is what the defaults depend on in addition to the VirtualMachine: KubeVirt's version
// and configuration. An absent field means KubeVirt's own default.
type Cluster struct {
	// KubeVirt is its version, such as v1.9.0. If it is set and the defaulter does not reproduce
	// its minor version, machine types are not pinned and addresses are not written.
	KubeVirt string `json:"kubevirt,omitempty"`
	// Target is the version that KubeVirt is being updated to. It is empty if there is no update. A
	// default is written only if both versions agree.
	Target string `json:"target,omitempty"`
	// DefaultArchitecture is amd64 by default.
	DefaultArchitecture string `json:"defaultArchitecture,omitempty"`
	// MachineTypes are the default machine types by architecture.
	MachineTypes map[string]string `json:"machineTypes,omitempty"`
	// NetworkInterface is the binding of the default interface: masquerade or bridge.
	NetworkInterface string `json:"networkInterface,omitempty"`
	// HostDevices maps resource names of permittedHostDevices to kinds. A name that is not in
	// it is a PCI device.
	HostDevices map[string]HostDeviceKind `json:"hostDevices,omitempty"`
	// TapBindings are the network binding plugins that attach a tap device.
	TapBindings []string `json:"tapBindings,omitempty"`
	// NUMAAwarePCI is the feature gate PCINUMAAwareTopology.
	NUMAAwarePCI bool `json:"numaAwarePCI,omitempty"`
	// Plugins is the feature gate of that name: plugins may change any VM.
	Plugins bool `json:"plugins,omitempty"`
	// CrossArchitecture is the feature gate CrossArchitectureVirtualization.
	CrossArchitecture bool `json:"crossArchitecture,omitempty"`
	// VGAForEFI means that a guest with EFI has VGA instead of bochs.
	VGAForEFI bool `json:"vgaForEFI,omitempty"`
}

// HostDeviceKind is the kind of a host device in the domain.
type HostDeviceKind string

// The kinds of host devices.
const (
	HostDevicePCI  HostDeviceKind = "pci"
	HostDeviceMDev HostDeviceKind = "mdev"
	HostDeviceUSB  HostDeviceKind = "usb"
)
