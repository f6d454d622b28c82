package defaulting

import (
	"encoding/json"

	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"
)

// Operation is what is done to the VirtualMachine.
type Operation string

// The operations. An empty one is Create.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
)

// Request asks for the defaults of one VirtualMachine.
type Request struct {
	// VM is the VirtualMachine as JSON. Fields that the defaulter does not know are
	// kept.
	VM json.RawMessage `json:"vm"`
	// OldVM is the stored one, on update.
	OldVM json.RawMessage `json:"oldVM,omitempty"`
	// Operation is CREATE unless it says otherwise.
	Operation Operation `json:"operation,omitempty"`
	// DryRun says that nothing will be stored. The answer is the same.
	DryRun bool `json:"dryRun,omitempty"`
	// Running says that a VirtualMachineInstance exists. Then nothing is written for
	// devices that it has already.
	Running bool `json:"running,omitempty"`
	// Instancetype is the spec of the instance type that the VirtualMachine names.
	// When it names one and this is absent, addresses are not written.
	Instancetype *instancetypev1beta1.VirtualMachineInstancetypeSpec `json:"instancetype,omitempty"`
	// Preference is the spec of the preference that the VirtualMachine names. When it
	// names one and this is absent, only the machine type is written.
	Preference *instancetypev1beta1.VirtualMachinePreferenceSpec `json:"preference,omitempty"`
	// Policy says what to write.
	Policy Policy `json:"policy,omitzero"`
	// Cluster is what KubeVirt's configuration says.
	Cluster Cluster `json:"cluster,omitzero"`
	// PatchOnly leaves the VirtualMachine out of the answer, which then has the
	// patch only.
	PatchOnly bool `json:"patchOnly,omitempty"`
}

// MachineTypePolicy says what becomes of an alias such as q35.
type MachineTypePolicy string

// The policies of the machine type. An empty one is MachineTypePin.
const (
	// MachineTypePin replaces an alias by the version that it stands for.
	MachineTypePin MachineTypePolicy = "pin"
	// MachineTypeKeep leaves it.
	MachineTypeKeep MachineTypePolicy = "keep"
)

// MACPolicy says what becomes of an interface without MAC address.
type MACPolicy string

// The policies of MAC addresses. An empty one is MACNever.
const (
	// MACNever leaves the address to KubeVirt or to a pool manager.
	MACNever MACPolicy = "never"
	// MACGenerate makes a random, locally administered one: 46 bits.
	MACGenerate MACPolicy = "generate"
)

// Policy says which defaults are written. Where a field is absent its default holds.
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

// Cluster is what the defaults depend on beside the VirtualMachine: KubeVirt's
// version and configuration. Where a field is absent KubeVirt's own default holds.
type Cluster struct {
	// KubeVirt is its version, such as v1.8.2. When it is given and differs in its
	// minor from the one that the defaulter reproduces, machine types are not pinned
	// and addresses not written.
	KubeVirt string `json:"kubevirt,omitempty"`
	// DefaultArchitecture is amd64 by default.
	DefaultArchitecture string `json:"defaultArchitecture,omitempty"`
	// MachineTypes are the default machine types by architecture.
	MachineTypes map[string]string `json:"machineTypes,omitempty"`
	// NetworkInterface is the binding of the default interface: masquerade or bridge.
	NetworkInterface string `json:"networkInterface,omitempty"`
	// HostDevices says what a resource name of permittedHostDevices stands for. A name
	// that is not in it is a PCI device.
	HostDevices map[string]HostDeviceKind `json:"hostDevices,omitempty"`
	// TapBindings are the network binding plugins that attach a tap device.
	TapBindings []string `json:"tapBindings,omitempty"`
	// NUMAAwarePCI is the feature gate PCINUMAAwareTopology.
	NUMAAwarePCI bool `json:"numaAwarePCI,omitempty"`
	// VGAForEFI says that a guest with EFI is given VGA and not bochs.
	VGAForEFI bool `json:"vgaForEFI,omitempty"`
}

// HostDeviceKind is what a host device is to the guest.
type HostDeviceKind string

// The kinds of host devices.
const (
	HostDevicePCI  HostDeviceKind = "pci"
	HostDeviceMDev HostDeviceKind = "mdev"
	HostDeviceUSB  HostDeviceKind = "usb"
)
