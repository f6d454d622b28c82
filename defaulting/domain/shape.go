package domain

import (
	"slices"
	"strings"

	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/defaulting"
)

// Shape is everything that the addresses of a VM's devices depend on: the normal form of
// VirtualMachines. It has no name, no source and no identity, and identifies devices by
// position. VMs of one shape have the same layout.
type Shape struct {
	Architecture string `json:"arch"`
	// MachineType is user-specified. Check validates it.
	MachineType string `json:"machine"`
	// LargeMemory means more than 2 GiB, for which KubeVirt adds more root ports.
	LargeMemory bool `json:"large,omitempty"`
	ACPI        bool `json:"acpi,omitempty"`
	EFI         bool `json:"efi,omitempty"`
	// SecureBoot is set with EFI only.
	SecureBoot   bool `json:"secureBoot,omitempty"`
	SMM          bool `json:"smm,omitempty"`
	Transitional bool `json:"transitional,omitempty"`
	// RootComplex is the annotation kubevirt.io/placePCIDevicesOnRootComplex.
	RootComplex bool `json:"rootComplex,omitempty"`
	// NoHole64 is the annotation kubevirt.io/disablePCIHole64, which only moves memory, but which libvirt
	// rejects for a machine type without PCIe.
	NoHole64 bool `json:"noHole64,omitempty"`
	// SlotCount is the value of the annotation kubevirt.io/pci-interface-slot-count, or nil
	// without it.
	SlotCount *int `json:"slots,omitempty"`
	// NoHotplug means that there are no root ports for hotplugged devices.
	NoHotplug bool `json:"noHotplug,omitempty"`
	// Interfaces is the number of interfaces of the instance, including those that are not in
	// the domain: KubeVirt counts all of them.
	Interfaces int `json:"interfaces"`

	Disks       []DiskShape       `json:"disks,omitempty"`
	NICs        []NICShape        `json:"nics,omitempty"`
	HostDevices []HostDeviceShape `json:"hostdevs,omitempty"`
	Inputs      []InputShape      `json:"inputs,omitempty"`
	// Filesystems is the number of virtiofs devices.
	Filesystems int `json:"filesystems,omitempty"`
	// Panics are the models of the panic devices. Empty means libvirt's default.
	Panics   []kubevirtv1.PanicDeviceModel `json:"panics,omitempty"`
	Video    string                        `json:"video,omitempty"`
	Sound    string                        `json:"sound,omitempty"`
	Watchdog bool                          `json:"watchdog,omitempty"`
	VSOCK    bool                          `json:"vsock,omitempty"`
	RNG      bool                          `json:"rng,omitempty"`
	Balloon  bool                          `json:"balloon,omitempty"`
	Serial   bool                          `json:"serial,omitempty"`
	SCSI     bool                          `json:"scsi,omitempty"`
	USB      bool                          `json:"usb,omitempty"`
}

// DiskShape is a disk of the domain.
type DiskShape struct {
	// Index is the index of the disk in the VirtualMachine.
	Index int `json:"i"`
	// Kind is disk, cdrom or lun.
	Kind string             `json:"kind"`
	Bus  kubevirtv1.DiskBus `json:"bus"`
	// Number is the position of the disk among those with the same device name prefix.
	Number   uint     `json:"n,omitempty"`
	ReadOnly bool     `json:"ro,omitempty"`
	Address  *Address `json:"at,omitempty"`
}

// NICShape is an interface of the domain.
type NICShape struct {
	// Index is the index of the interface in the VirtualMachine.
	Index   int      `json:"i"`
	Model   string   `json:"model"`
	Address *Address `json:"at,omitempty"`
}

// HostDeviceShape is a device of a node: a GPU, an SR-IOV function, another.
type HostDeviceShape struct {
	// List is the list that contains the device: hostDevices, gpus or interfaces.
	List  string `json:"list"`
	Index int    `json:"i"`
	// Kind is pci, mdev or usb.
	Kind    defaulting.HostDeviceKind `json:"kind"`
	Address *Address                  `json:"at,omitempty"`
}

// InputShape is an input device.
type InputShape struct {
	Type kubevirtv1.InputType `json:"type"`
	Bus  kubevirtv1.InputBus  `json:"bus"`
}

// The lists that contain host devices.
const (
	ListHostDevices = "hostDevices"
	ListGPUs        = "gpus"
	ListInterfaces  = "interfaces"
)

// largeMemory is the guest memory, in bytes, above which KubeVirt adds more root ports.
const largeMemory = 2 << 30

// NewShape reduces a PreparedVM to its shape. The PreparedVM must have passed Check.
func NewShape(m *PreparedVM, cluster defaulting.Cluster) Shape {
	spec, devices := &m.Spec, &m.Spec.Domain.Devices
	s := Shape{
		Architecture: spec.Architecture,
		MachineType:  spec.Domain.Machine.Type,
		LargeMemory:  guestMemory(spec) > largeMemory,
		ACPI:         is(spec.Domain.Features.ACPI.Enabled, true),
		EFI:          hasEFI(spec),
		Transitional: is(devices.UseVirtioTransitional, false),
		RootComplex:  m.Annotations[kubevirtv1.PlacePCIDevicesOnRootComplex] == "true",
		SlotCount:    slotCount(m.Annotations),
		Interfaces:   len(devices.Interfaces),
		Watchdog:     devices.Watchdog != nil && spec.Architecture == AMD64,
		VSOCK:        is(devices.AutoattachVSOCK, false),
		RNG:          devices.Rng != nil,
		Balloon:      is(devices.AutoattachMemBalloon, true),
		Serial:       is(devices.AutoattachSerialConsole, true),
	}
	if devices.Sound != nil {
		s.Sound = devices.Sound.Model
	}
	for _, filesystem := range devices.Filesystems {
		if filesystem.Virtiofs != nil {
			s.Filesystems++
		}
	}
	for _, device := range devices.PanicDevices {
		model := kubevirtv1.PanicDeviceModel("")
		if device.Model != nil {
			model = *device.Model
		}
		s.Panics = append(s.Panics, model)
	}
	s.SecureBoot = s.EFI && is(spec.Domain.Firmware.Bootloader.EFI.SecureBoot, true)
	if smm := spec.Domain.Features.SMM; smm != nil {
		s.SMM = is(smm.Enabled, true)
	}
	s.NoHole64 = spec.Architecture == AMD64 && strings.EqualFold(m.Annotations[kubevirtv1.DisablePCIHole64], "true")
	s.NoHotplug = spec.Architecture == S390X || m.Release.RequiresPCIe && !hasPCIe(s.MachineType)
	s.Disks = disks(spec)
	s.NICs = nics(devices, cluster)
	s.HostDevices = hostDevices(devices, cluster)
	s.Video = video(spec, s.EFI, cluster)
	s.Inputs = inputs(spec, s.Video != "")
	s.SCSI = needsSCSI(devices)
	s.USB = needsUSB(spec, s.HostDevices)
	return s
}

func is(value *bool, absent bool) bool {
	if value == nil {
		return absent
	}
	return *value
}

// Addressed reports whether a device has a requested address.
func (s Shape) Addressed() bool {
	return slices.ContainsFunc(s.Disks, func(d DiskShape) bool { return d.Address != nil }) ||
		slices.ContainsFunc(s.NICs, func(n NICShape) bool { return n.Address != nil }) ||
		slices.ContainsFunc(s.HostDevices, func(d HostDeviceShape) bool { return d.Address != nil })
}

func guestMemory(spec *vmSpec) int64 {
	if memory := spec.Domain.Memory; memory != nil && memory.Guest != nil {
		return memory.Guest.Value()
	}
	return 0
}

func hasEFI(spec *vmSpec) bool {
	firmware := spec.Domain.Firmware
	return firmware != nil && firmware.Bootloader != nil && firmware.Bootloader.EFI != nil
}

// disks omits hotplugged disks. A hotplugged disk still counts for the device names, so the
// disks after it keep their position.
func disks(spec *vmSpec) []DiskShape {
	plugged := map[string]bool{}
	for i := range spec.Volumes {
		plugged[spec.Volumes[i].Name] = hotplugged(&spec.Volumes[i])
	}
	var shapes []DiskShape
	named := map[string]uint{}
	for i := range spec.Domain.Devices.Disks {
		disk := &spec.Domain.Devices.Disks[i]
		shape := DiskShape{Index: i}
		switch {
		case disk.Disk != nil:
			shape.Kind, shape.Bus, shape.ReadOnly = "disk", disk.Disk.Bus, disk.Disk.ReadOnly
			shape.Address = addressOf(disk.Disk.PciAddress)
		case disk.CDRom != nil:
			shape.Kind, shape.Bus, shape.ReadOnly = "cdrom", disk.CDRom.Bus, is(disk.CDRom.ReadOnly, true)
		case disk.LUN != nil:
			shape.Kind, shape.Bus, shape.ReadOnly = "lun", disk.LUN.Bus, disk.LUN.ReadOnly
		}
		prefix := targetPrefix(shape.Bus)
		shape.Number = named[prefix]
		named[prefix]++
		if !plugged[disk.Name] {
			shapes = append(shapes, shape)
		}
	}
	return shapes
}

func hotplugged(volume *kubevirtv1.Volume) bool {
	return volume.DataVolume != nil && volume.DataVolume.Hotpluggable ||
		volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.Hotpluggable ||
		volume.MemoryDump != nil
}

// nics returns the interfaces that KubeVirt adds to the domain itself.
func nics(devices *kubevirtv1.Devices, cluster defaulting.Cluster) []NICShape {
	var shapes []NICShape
	for i := range devices.Interfaces {
		nic := &devices.Interfaces[i]
		if nic.State == kubevirtv1.InterfaceStateAbsent || nic.SRIOV != nil || nic.Binding != nil && !tapBinding(nic, cluster) {
			continue
		}
		shapes = append(shapes, NICShape{Index: i, Model: nic.Model, Address: addressOf(nic.PciAddress)})
	}
	return shapes
}

func tapBinding(nic *kubevirtv1.Interface, cluster defaulting.Cluster) bool {
	for _, name := range cluster.TapBindings {
		if nic.Binding.Name == name {
			return true
		}
	}
	return false
}

// hostDevices returns the host devices in KubeVirt's order: those of each list by kind, PCI
// first.
func hostDevices(devices *kubevirtv1.Devices, cluster defaulting.Cluster) []HostDeviceShape {
	kind := func(resource string) defaulting.HostDeviceKind {
		if kind, ok := cluster.HostDevices[resource]; ok {
			return kind
		}
		return defaulting.HostDevicePCI
	}
	var shapes []HostDeviceShape
	for _, wanted := range []defaulting.HostDeviceKind{defaulting.HostDevicePCI, defaulting.HostDeviceMDev, defaulting.HostDeviceUSB} {
		for i := range devices.HostDevices {
			if kind(devices.HostDevices[i].DeviceName) == wanted {
				shapes = append(shapes, HostDeviceShape{List: ListHostDevices, Index: i, Kind: wanted})
			}
		}
	}
	for _, wanted := range []defaulting.HostDeviceKind{defaulting.HostDevicePCI, defaulting.HostDeviceMDev} {
		for i := range devices.GPUs {
			if kind(devices.GPUs[i].DeviceName) == wanted {
				shapes = append(shapes, HostDeviceShape{List: ListGPUs, Index: i, Kind: wanted})
			}
		}
	}
	for i := range devices.Interfaces {
		nic := &devices.Interfaces[i]
		if nic.SRIOV != nil && nic.State != kubevirtv1.InterfaceStateAbsent {
			shapes = append(shapes, HostDeviceShape{
				List: ListInterfaces, Index: i, Kind: defaulting.HostDevicePCI, Address: addressOf(nic.PciAddress),
			})
		}
	}
	return shapes
}

func video(spec *vmSpec, efi bool, cluster defaulting.Cluster) string {
	devices := &spec.Domain.Devices
	switch {
	case !is(devices.AutoattachGraphicsDevice, true):
		return ""
	case devices.Video != nil && devices.Video.Type != "":
		return devices.Video.Type
	case spec.Architecture != AMD64:
		return "virtio"
	case efi && !cluster.VGAForEFI:
		return "bochs"
	}
	return "vga"
}

func inputs(spec *vmSpec, graphics bool) []InputShape {
	var shapes []InputShape
	tablet := false
	for _, input := range spec.Domain.Devices.Inputs {
		shapes = append(shapes, InputShape{Type: input.Type, Bus: input.Bus})
		tablet = tablet || input.Type == kubevirtv1.InputTypeTablet
	}
	if !graphics || spec.Architecture != ARM64 {
		return shapes
	}
	if !tablet {
		shapes = append(shapes, InputShape{Type: kubevirtv1.InputTypeTablet, Bus: kubevirtv1.InputBusUSB})
	}
	return append(shapes, InputShape{Type: kubevirtv1.InputTypeKeyboard, Bus: kubevirtv1.InputBusUSB})
}

func needsSCSI(devices *kubevirtv1.Devices) bool {
	if !devices.DisableHotplug {
		return true
	}
	for i := range devices.Disks {
		if bus, _ := busOf(&devices.Disks[i], nil); bus != nil && *bus == kubevirtv1.DiskBusSCSI {
			return true
		}
	}
	return false
}

func needsUSB(spec *vmSpec, hostDevices []HostDeviceShape) bool {
	devices := &spec.Domain.Devices
	if spec.Architecture == ARM64 || devices.ClientPassthrough != nil {
		return true
	}
	for _, input := range devices.Inputs {
		if input.Bus == kubevirtv1.InputBusUSB || input.Bus == "" {
			return true
		}
	}
	for _, disk := range devices.Disks {
		if disk.Disk != nil && disk.Disk.Bus == kubevirtv1.DiskBusUSB {
			return true
		}
	}
	for _, device := range hostDevices {
		if device.Kind == defaulting.HostDeviceUSB {
			return true
		}
	}
	return false
}

// addressOf parses an address that Check has accepted.
func addressOf(text string) *Address {
	if text == "" {
		return nil
	}
	address, err := ParseAddress(text)
	if err != nil {
		return nil
	}
	return &address
}
