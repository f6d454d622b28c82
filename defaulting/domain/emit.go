package domain

import (
	"fmt"
	"strconv"

	kubevirtv1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"

	"github.com/vmstencil/stencil/defaulting"
)

// Aliases of the devices that are read back. libvirt preserves an alias that begins with ua-.
// It sorts the disks, so only the alias identifies one.
func diskAlias(index int) string { return "ua-disk-" + strconv.Itoa(index) }
func nicAlias(index int) string  { return "ua-nic-" + strconv.Itoa(index) }
func hostDeviceAlias(d HostDeviceShape) string {
	if d.List == ListInterfaces {
		return nicAlias(d.Index)
	}
	return "ua-" + d.List + "-" + strconv.Itoa(d.Index)
}

// mock returns a placeholder path, the only kind of source that is passed to libvirt.
func mock(number int) string { return "/mock/" + strconv.Itoa(number) }

// Domain returns the shape as KubeVirt's converter would write it for libvirt, reduced to what
// addresses depend on. It has no name and no UUID; the caller adds them.
func (s Shape) Domain() *libvirtxml.Domain {
	d := &libvirtxml.Domain{
		Type:   "qemu",
		Memory: &libvirtxml.DomainMemory{Value: 1 << 20, Unit: "KiB"},
		VCPU:   &libvirtxml.DomainVCPU{Value: 1},
		OS: &libvirtxml.DomainOS{Type: &libvirtxml.DomainOSType{
			Arch: libvirtArchitecture(s.Architecture), Machine: s.MachineType, Type: "hvm",
		}},
		Features: &libvirtxml.DomainFeatureList{},
		Devices:  &libvirtxml.DomainDeviceList{},
	}
	if s.EFI {
		d.OS.Loader = &libvirtxml.DomainLoader{Path: "/mock/efi", Readonly: "yes", Type: "pflash"}
		d.OS.NVRam = &libvirtxml.DomainNVRam{NVRam: "/mock/nvram"}
	}
	if s.SecureBoot {
		d.OS.Loader.Secure = "yes"
	}
	if s.SMM {
		d.Features.SMM = &libvirtxml.DomainFeatureSMM{State: "on"}
	}
	if s.ACPI {
		d.Features.ACPI = &libvirtxml.DomainFeature{}
	}
	if s.Filesystems > 0 {
		d.MemoryBacking = &libvirtxml.DomainMemoryBacking{
			MemorySource: &libvirtxml.DomainMemorySource{Type: "memfd"},
			MemoryAccess: &libvirtxml.DomainMemoryAccess{Mode: "shared"},
		}
	}
	s.addDevices(d.Devices)
	if s.RootComplex {
		placeOnRootComplex(d.Devices)
	}
	return d
}

func (s Shape) addDevices(devices *libvirtxml.DomainDeviceList) {
	virtio := s.VirtioModel()
	for _, nic := range s.NICs {
		devices.Interfaces = append(devices.Interfaces, nic.domain(virtio))
	}
	devices.Channels = []libvirtxml.DomainChannel{{
		Source: &libvirtxml.DomainChardevSource{UNIX: &libvirtxml.DomainChardevSourceUNIX{Mode: "bind", Path: "/mock/channel"}},
		Target: &libvirtxml.DomainChannelTarget{VirtIO: &libvirtxml.DomainChannelTargetVirtIO{Name: "org.qemu.guest_agent.0"}},
	}}
	for number, device := range s.HostDevices {
		devices.Hostdevs = append(devices.Hostdevs, device.domain(number))
	}
	for _, model := range s.Panics {
		devices.Panics = append(devices.Panics, libvirtxml.DomainPanic{Model: string(model)})
	}
	s.addControllers(devices, virtio)
	if s.Video != "" {
		devices.Videos = []libvirtxml.DomainVideo{{Model: libvirtxml.DomainVideoModel{Type: s.Video, Heads: 1}}}
		devices.Graphics = []libvirtxml.DomainGraphic{{VNC: &libvirtxml.DomainGraphicVNC{
			Listeners: []libvirtxml.DomainGraphicListener{{Socket: &libvirtxml.DomainGraphicListenerSocket{Socket: "/mock/vnc"}}},
		}}}
	}
	devices.MemBalloon = &libvirtxml.DomainMemBalloon{Model: "none"}
	if s.Balloon {
		devices.MemBalloon.Model = virtio
	}
	for number, disk := range s.Disks {
		devices.Disks = append(devices.Disks, disk.domain(number, virtio))
	}
	for _, input := range s.Inputs {
		shown := libvirtxml.DomainInput{Type: string(input.Type), Bus: string(input.Bus)}
		if input.Bus == kubevirtv1.InputBusVirtio {
			shown.Model = kubevirtv1.VirtIO
		}
		devices.Inputs = append(devices.Inputs, shown)
	}
	if s.Watchdog {
		devices.Watchdogs = []libvirtxml.DomainWatchdog{{Model: "i6300esb", Action: "reset"}}
	}
	if s.RNG {
		devices.RNGs = []libvirtxml.DomainRNG{{
			Model:   virtio,
			Backend: &libvirtxml.DomainRNGBackend{Random: &libvirtxml.DomainRNGBackendRandom{Device: "/dev/urandom"}},
		}}
	}
	for number := range s.Filesystems {
		devices.Filesystems = append(devices.Filesystems, libvirtxml.DomainFilesystem{
			AccessMode: "passthrough",
			Driver:     &libvirtxml.DomainFilesystemDriver{Type: "virtiofs", Queue: 1024},
			Source:     &libvirtxml.DomainFilesystemSource{Mount: &libvirtxml.DomainFilesystemSourceMount{Socket: mock(number)}},
			Target:     &libvirtxml.DomainFilesystemTarget{Dir: "fs" + strconv.Itoa(number)},
		})
	}
	if s.Sound != "" {
		devices.Sounds = []libvirtxml.DomainSound{{Model: s.Sound}}
	}
	if s.VSOCK {
		devices.VSock = &libvirtxml.DomainVSock{Model: "virtio-non-transitional", CID: &libvirtxml.DomainVSockCID{Auto: "no", Address: "3"}}
	}
}

// VirtioModel returns the model of the virtio devices.
func (s Shape) VirtioModel() string {
	if s.Transitional {
		return "virtio-transitional"
	}
	return "virtio-non-transitional"
}

func (s Shape) addControllers(devices *libvirtxml.DomainDeviceList, virtio string) {
	add := func(kind, model string) {
		first := uint(0)
		devices.Controllers = append(devices.Controllers, libvirtxml.DomainController{Type: kind, Index: &first, Model: model})
	}
	if s.USB {
		add("usb", "qemu-xhci")
	} else {
		add("usb", "none")
	}
	if s.SCSI {
		add("scsi", virtio)
	}
	if s.NoHole64 {
		add("pci", "pcie-root")
	}
	if s.Serial {
		add("virtio-serial", virtio)
	}
}

func (n NICShape) domain(virtio string) libvirtxml.DomainInterface {
	model := n.Model
	if model == kubevirtv1.VirtIO {
		model = virtio
	}
	return libvirtxml.DomainInterface{
		// libvirt would generate a random one.
		MAC:     &libvirtxml.DomainInterfaceMAC{Address: fmt.Sprintf("02:00:00:00:%02x:%02x", n.Index>>8&0xff, n.Index&0xff)},
		Source:  &libvirtxml.DomainInterfaceSource{Ethernet: &libvirtxml.DomainInterfaceSourceEthernet{}},
		Target:  &libvirtxml.DomainInterfaceTarget{Dev: "nic" + strconv.Itoa(n.Index), Managed: "no"},
		Model:   &libvirtxml.DomainInterfaceModel{Type: model},
		Alias:   &libvirtxml.DomainAlias{Name: nicAlias(n.Index)},
		Address: n.Address.domain(),
	}
}

func (d DiskShape) domain(number int, virtio string) libvirtxml.DomainDisk {
	disk := libvirtxml.DomainDisk{
		Device:  d.Kind,
		Driver:  &libvirtxml.DomainDiskDriver{Name: "qemu", Type: "raw"},
		Source:  &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{File: mock(number)}},
		Target:  &libvirtxml.DomainDiskTarget{Dev: d.target(), Bus: string(d.Bus)},
		Alias:   &libvirtxml.DomainAlias{Name: diskAlias(d.Index)},
		Address: d.Address.domain(),
	}
	if d.Kind == "lun" {
		disk.Source = &libvirtxml.DomainDiskSource{Block: &libvirtxml.DomainDiskSourceBlock{Dev: mock(number)}}
	}
	if d.ReadOnly {
		disk.ReadOnly = &libvirtxml.DomainDiskReadOnly{}
	}
	if d.Bus == kubevirtv1.DiskBusVirtio && d.Kind == "disk" {
		disk.Model = virtio
	}
	if d.Bus == kubevirtv1.DiskBusSCSI && d.Kind != "cdrom" {
		zero, unit := uint(0), d.Number
		disk.Address = &libvirtxml.DomainAddress{Drive: &libvirtxml.DomainAddressDrive{Controller: &zero, Bus: &zero, Unit: &unit}}
	}
	return disk
}

// target returns the disk's device name for libvirt, which determines its position on its bus.
func (d DiskShape) target() string {
	name := ""
	for left := int(d.Number); left >= 0; left = left/26 - 1 {
		name = string(rune('a'+left%26)) + name
	}
	return targetPrefix(d.Bus) + name
}

// targetPrefix returns the prefix of the device names of disks on a bus. SATA, SCSI and USB
// share one.
func targetPrefix(bus kubevirtv1.DiskBus) string {
	if bus == kubevirtv1.DiskBusVirtio {
		return "vd"
	}
	return "sd"
}

func (d HostDeviceShape) domain(number int) libvirtxml.DomainHostdev {
	device := libvirtxml.DomainHostdev{
		Alias:   &libvirtxml.DomainAlias{Name: hostDeviceAlias(d)},
		Address: d.Address.domain(),
	}
	switch d.Kind {
	case defaulting.HostDeviceMDev:
		device.SubsysMDev = &libvirtxml.DomainHostdevSubsysMDev{
			Model: "vfio-pci",
			Source: &libvirtxml.DomainHostdevSubsysMDevSource{Address: &libvirtxml.DomainAddressMDev{
				UUID: fmt.Sprintf("00000000-0000-4000-8000-%012x", number),
			}},
		}
	case defaulting.HostDeviceUSB:
		one, port := uint(1), uint(number+1)
		device.SubsysUSB = &libvirtxml.DomainHostdevSubsysUSB{Source: &libvirtxml.DomainHostdevSubsysUSBSource{
			Address: &libvirtxml.DomainAddressUSB{Bus: &one, Device: &port},
		}}
	default:
		device.Managed = "no"
		// A PCI domain that no node has.
		device.SubsysPCI = &libvirtxml.DomainHostdevSubsysPCI{Source: &libvirtxml.DomainHostdevSubsysPCISource{
			Address: Address{Domain: 0xffff, Bus: uint(number) + 1}.pci(),
		}}
	}
	return device
}

// domain returns the address in libvirt's format, or nil for none.
func (a *Address) domain() *libvirtxml.DomainAddress {
	if a == nil {
		return nil
	}
	return &libvirtxml.DomainAddress{PCI: a.pci()}
}

func (a Address) pci() *libvirtxml.DomainAddressPCI {
	return &libvirtxml.DomainAddressPCI{Domain: &a.Domain, Bus: &a.Bus, Slot: &a.Slot, Function: &a.Function}
}

func libvirtArchitecture(architecture string) string {
	switch architecture {
	case AMD64:
		return "x86_64"
	case ARM64:
		return "aarch64"
	}
	return architecture
}
