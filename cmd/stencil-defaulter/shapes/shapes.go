package shapes

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/defaulting"
)

// Option changes a VirtualMachine.
type Option func(*kubevirtv1.VirtualMachine)

// New returns a VirtualMachine with 1 GiB of memory, changed by options.
func New(options ...Option) *kubevirtv1.VirtualMachine {
	memory := resource.MustParse("1Gi")
	vm := &kubevirtv1.VirtualMachine{
		TypeMeta:   metav1.TypeMeta{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web-1"},
		Spec: kubevirtv1.VirtualMachineSpec{Template: &kubevirtv1.VirtualMachineInstanceTemplateSpec{Spec: kubevirtv1.VirtualMachineInstanceSpec{
			Domain: kubevirtv1.DomainSpec{
				Memory:   &kubevirtv1.Memory{Guest: &memory},
				Firmware: &kubevirtv1.Firmware{UUID: "e4686d2c-6e8d-4335-b8fd-81bee22f4814"},
			},
		}}},
	}
	for _, change := range options {
		change(vm)
	}
	return vm
}

// SpecOf returns the spec of the VirtualMachine's template.
func SpecOf(vm *kubevirtv1.VirtualMachine) *kubevirtv1.VirtualMachineInstanceSpec {
	return &vm.Spec.Template.Spec
}

// DevicesOf returns the devices in that spec.
func DevicesOf(vm *kubevirtv1.VirtualMachine) *kubevirtv1.Devices { return &SpecOf(vm).Domain.Devices }

// AddDisk adds a disk and its volume.
func AddDisk(vm *kubevirtv1.VirtualMachine, device kubevirtv1.DiskDevice) {
	devices := DevicesOf(vm)
	name := fmt.Sprintf("volume-%d", len(devices.Disks))
	devices.Disks = append(devices.Disks, kubevirtv1.Disk{Name: name, DiskDevice: device})
	SpecOf(vm).Volumes = append(SpecOf(vm).Volumes, kubevirtv1.Volume{Name: name, VolumeSource: kubevirtv1.VolumeSource{
		DataVolume: &kubevirtv1.DataVolumeSource{Name: "secret-source-" + name},
	}})
}

// Disks adds disks on a bus.
func Disks(count int, bus kubevirtv1.DiskBus) Option {
	return func(vm *kubevirtv1.VirtualMachine) {
		for range count {
			AddDisk(vm, kubevirtv1.DiskDevice{Disk: &kubevirtv1.DiskTarget{Bus: bus}})
		}
	}
}

// DiskAt adds a disk on virtio at an address.
func DiskAt(address string) Option {
	return func(vm *kubevirtv1.VirtualMachine) {
		AddDisk(vm, kubevirtv1.DiskDevice{Disk: &kubevirtv1.DiskTarget{Bus: kubevirtv1.DiskBusVirtio, PciAddress: address}})
	}
}

// CDROMs adds cdroms on a bus.
func CDROMs(count int, bus kubevirtv1.DiskBus) Option {
	return func(vm *kubevirtv1.VirtualMachine) {
		for range count {
			AddDisk(vm, kubevirtv1.DiskDevice{CDRom: &kubevirtv1.CDRomTarget{Bus: bus}})
		}
	}
}

// LUNs adds luns on a bus.
func LUNs(count int, bus kubevirtv1.DiskBus) Option {
	return func(vm *kubevirtv1.VirtualMachine) {
		for range count {
			AddDisk(vm, kubevirtv1.DiskDevice{LUN: &kubevirtv1.LunTarget{Bus: bus}})
		}
	}
}

// AddNIC adds an interface and its network.
func AddNIC(vm *kubevirtv1.VirtualMachine, change func(*kubevirtv1.Interface)) {
	devices := DevicesOf(vm)
	name := fmt.Sprintf("net-%d", len(devices.Interfaces))
	nic := kubevirtv1.Interface{Name: name, InterfaceBindingMethod: kubevirtv1.InterfaceBindingMethod{Bridge: &kubevirtv1.InterfaceBridge{}}}
	change(&nic)
	devices.Interfaces = append(devices.Interfaces, nic)
	SpecOf(vm).Networks = append(SpecOf(vm).Networks, kubevirtv1.Network{Name: name, NetworkSource: kubevirtv1.NetworkSource{
		Multus: &kubevirtv1.MultusNetwork{NetworkName: "secret-network-" + name},
	}})
}

// NICs adds interfaces of a model.
func NICs(count int, model string) Option {
	return func(vm *kubevirtv1.VirtualMachine) {
		for range count {
			AddNIC(vm, func(nic *kubevirtv1.Interface) { nic.Model = model })
		}
	}
}

// NICAt adds an interface at an address.
func NICAt(address string) Option {
	return func(vm *kubevirtv1.VirtualMachine) {
		AddNIC(vm, func(nic *kubevirtv1.Interface) { nic.PciAddress = address })
	}
}

// SRIOV adds SR-IOV interfaces.
func SRIOV(count int) Option {
	return func(vm *kubevirtv1.VirtualMachine) {
		for range count {
			AddNIC(vm, func(nic *kubevirtv1.Interface) {
				nic.InterfaceBindingMethod = kubevirtv1.InterfaceBindingMethod{SRIOV: &kubevirtv1.InterfaceSRIOV{}}
			})
		}
	}
}

// NoNetwork disables the default interface.
func NoNetwork(vm *kubevirtv1.VirtualMachine) {
	no := false
	DevicesOf(vm).AutoattachPodInterface = &no
}

// Memory sets the guest's memory.
func Memory(size string) Option {
	return func(vm *kubevirtv1.VirtualMachine) {
		guest := resource.MustParse(size)
		SpecOf(vm).Domain.Memory.Guest = &guest
	}
}

// GPUs adds GPUs.
func GPUs(count int) Option {
	return func(vm *kubevirtv1.VirtualMachine) {
		for i := range count {
			DevicesOf(vm).GPUs = append(DevicesOf(vm).GPUs, kubevirtv1.GPU{Name: fmt.Sprintf("gpu-%d", i), DeviceName: "vendor.com/gpu"})
		}
	}
}

// HostDevice adds a device of a node.
func HostDevice(resource string) Option {
	return func(vm *kubevirtv1.VirtualMachine) {
		DevicesOf(vm).HostDevices = append(DevicesOf(vm).HostDevices, kubevirtv1.HostDevice{Name: "device-" + resource[:3], DeviceName: resource})
	}
}

// Annotation annotates the template.
func Annotation(key, value string) Option {
	return func(vm *kubevirtv1.VirtualMachine) {
		meta := &vm.Spec.Template.ObjectMeta
		if meta.Annotations == nil {
			meta.Annotations = map[string]string{}
		}
		meta.Annotations[key] = value
	}
}

// EFI makes the VirtualMachine boot from EFI.
func EFI(secureBoot bool) Option {
	return func(vm *kubevirtv1.VirtualMachine) {
		yes := true
		SpecOf(vm).Domain.Firmware.Bootloader = &kubevirtv1.Bootloader{EFI: &kubevirtv1.EFI{SecureBoot: &secureBoot}}
		if secureBoot {
			SpecOf(vm).Domain.Features = &kubevirtv1.Features{SMM: &kubevirtv1.FeatureState{Enabled: &yes}}
		}
	}
}

// MachineType sets the machine type.
func MachineType(name string) Option {
	return func(vm *kubevirtv1.VirtualMachine) { SpecOf(vm).Domain.Machine = &kubevirtv1.Machine{Type: name} }
}

// With changes a VirtualMachine with a function.
func With(change func(*kubevirtv1.VirtualMachineInstanceSpec, *kubevirtv1.Devices)) Option {
	return func(vm *kubevirtv1.VirtualMachine) { change(SpecOf(vm), DevicesOf(vm)) }
}

func off() *bool { no := false; return &no }
func on() *bool  { yes := true; return &yes }

// All maps a description to the options of a VirtualMachine.
var All = map[string][]Option{
	"nothing but the defaults":         nil,
	"no network":                       {NoNetwork},
	"one virtio disk":                  {Disks(1, "virtio"), NICs(1, "virtio")},
	"two virtio disks":                 {Disks(2, "virtio"), NICs(1, "virtio")},
	"ten virtio disks":                 {Disks(10, "virtio"), NICs(1, "virtio")},
	"twenty-two virtio disks":          {Disks(22, "virtio"), NICs(1, "virtio")},
	"one SATA disk":                    {Disks(1, "sata"), NICs(1, "virtio")},
	"six SATA disks":                   {Disks(6, "sata"), NICs(1, "virtio")},
	"seven SATA disks":                 {Disks(7, "sata"), Disks(1, "virtio"), NICs(1, "virtio")},
	"one SCSI disk":                    {Disks(1, "scsi"), NICs(1, "virtio")},
	"twenty-six SCSI disks":            {Disks(26, "scsi"), NICs(1, "virtio")},
	"a USB disk":                       {Disks(1, "usb"), NICs(1, "virtio")},
	"disks on every bus":               {Disks(2, "virtio"), Disks(2, "sata"), Disks(2, "scsi"), NICs(1, "virtio")},
	"disks on every bus the other way": {Disks(2, "scsi"), Disks(2, "sata"), Disks(2, "virtio"), NICs(1, "virtio")},
	"a cdrom on SATA":                  {Disks(1, "virtio"), CDROMs(1, "sata"), NICs(1, "virtio")},
	"a cdrom on SCSI":                  {Disks(1, "virtio"), CDROMs(1, "scsi"), NICs(1, "virtio")},
	"a lun on SCSI":                    {Disks(1, "virtio"), LUNs(1, "scsi"), NICs(1, "virtio")},
	"a lun on virtio":                  {LUNs(1, "virtio"), NICs(1, "virtio")},
	"a volume without disk": {With(func(s *kubevirtv1.VirtualMachineInstanceSpec, _ *kubevirtv1.Devices) {
		s.Volumes = []kubevirtv1.Volume{{Name: "a"}}
	})},
	"two interfaces":           {Disks(1, "virtio"), NICs(2, "virtio")},
	"three interfaces":         {Disks(1, "virtio"), NICs(3, "virtio")},
	"four interfaces":          {Disks(1, "virtio"), NICs(4, "virtio")},
	"five interfaces":          {Disks(1, "virtio"), NICs(5, "virtio")},
	"twelve interfaces":        {Disks(1, "virtio"), NICs(12, "virtio")},
	"an e1000":                 {Disks(1, "virtio"), NICs(1, "e1000")},
	"an e1000e":                {Disks(1, "virtio"), NICs(1, "e1000e")},
	"an rtl8139":               {Disks(1, "virtio"), NICs(1, "rtl8139")},
	"interfaces of each model": {Disks(1, "virtio"), NICs(1, "virtio"), NICs(1, "e1000e"), NICs(1, "e1000"), NICs(1, "rtl8139")},
	"an absent interface": {Disks(1, "virtio"), NICs(2, "virtio"), With(func(_ *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) {
		d.Interfaces[0].State = kubevirtv1.InterfaceStateAbsent
	})},
	"an SR-IOV interface":              {Disks(1, "virtio"), NICs(1, "virtio"), SRIOV(1)},
	"three SR-IOV interfaces":          {Disks(1, "virtio"), SRIOV(3)},
	"a GPU":                            {Disks(1, "virtio"), NICs(1, "virtio"), GPUs(1)},
	"two GPUs and another host device": {Disks(1, "virtio"), NICs(1, "virtio"), GPUs(2), HostDevice("vendor.com/nvme")},
	"a mediated and a USB device":      {Disks(1, "virtio"), NICs(1, "virtio"), HostDevice("mdev.com/vgpu"), HostDevice("usb.com/stick")},
	"vsock":                            {Disks(1, "virtio"), NICs(1, "virtio"), With(func(_ *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) { d.AutoattachVSOCK = on() })},
	"a TPM":                            {Disks(1, "virtio"), NICs(1, "virtio"), With(func(_ *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) { d.TPM = &kubevirtv1.TPMDevice{} })},
	"EFI":                              {Disks(1, "virtio"), NICs(1, "virtio"), EFI(false)},
	"secure boot":                      {Disks(1, "virtio"), NICs(1, "virtio"), EFI(true)},
	"hyperv": {Disks(1, "sata"), NICs(1, "e1000e"), With(func(s *kubevirtv1.VirtualMachineInstanceSpec, _ *kubevirtv1.Devices) {
		s.Domain.Features = &kubevirtv1.Features{Hyperv: &kubevirtv1.FeatureHyperv{Relaxed: &kubevirtv1.FeatureState{}}}
	})},
	"a random number generator": {Disks(1, "virtio"), NICs(1, "virtio"), With(func(_ *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) { d.Rng = &kubevirtv1.Rng{} })},
	"no balloon":                {Disks(1, "virtio"), NICs(1, "virtio"), With(func(_ *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) { d.AutoattachMemBalloon = off() })},
	"no graphics": {Disks(1, "virtio"), NICs(1, "virtio"), With(func(_ *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) {
		d.AutoattachGraphicsDevice = off()
	})},
	"no serial console": {Disks(1, "virtio"), NICs(1, "virtio"), With(func(_ *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) {
		d.AutoattachSerialConsole = off()
	})},
	"no hotplug": {Disks(1, "virtio"), NICs(1, "virtio"), With(func(_ *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) { d.DisableHotplug = true })},
	"a USB tablet": {Disks(1, "virtio"), NICs(1, "virtio"), With(func(_ *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) {
		d.Inputs = []kubevirtv1.Input{{Name: "t"}}
	})},
	"a virtio tablet": {Disks(1, "virtio"), NICs(1, "virtio"), With(func(_ *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) {
		d.Inputs = []kubevirtv1.Input{{Name: "t", Bus: "virtio"}}
	})},
	"an automatic input device": {Disks(1, "virtio"), NICs(1, "virtio"), With(func(_ *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) { d.AutoattachInputDevice = on() })},
	"sound": {Disks(1, "virtio"), NICs(1, "virtio"), With(func(_ *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) {
		d.Sound = &kubevirtv1.SoundDevice{Name: "s"}
	})},
	"ac97 sound": {Disks(1, "virtio"), NICs(1, "virtio"), With(func(_ *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) {
		d.Sound = &kubevirtv1.SoundDevice{Name: "s", Model: "ac97"}
	})},
	"a watchdog": {Disks(1, "virtio"), NICs(1, "virtio"), With(func(_ *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) {
		d.Watchdog = &kubevirtv1.Watchdog{Name: "w"}
	})},
	"a file system": {Disks(1, "virtio"), NICs(1, "virtio"), With(func(_ *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) {
		d.Filesystems = []kubevirtv1.Filesystem{{Name: "f", Virtiofs: &kubevirtv1.FilesystemVirtiofs{}}}
	})},
	"transitional virtio":                  {Disks(2, "virtio"), NICs(2, "virtio"), With(func(_ *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) { d.UseVirtioTransitional = on() })},
	"more than 2 GiB":                      {Disks(2, "virtio"), NICs(1, "virtio"), Memory("4Gi")},
	"more than 2 GiB with many disks":      {Disks(14, "virtio"), NICs(2, "virtio"), Memory("64Gi")},
	"exactly 2 GiB":                        {Disks(2, "virtio"), NICs(1, "virtio"), Memory("2Gi")},
	"a machine type without PCIe":          {Disks(2, "virtio"), NICs(1, "virtio"), MachineType("pc")},
	"no 64-bit PCI hole":                   {Disks(2, "virtio"), NICs(1, "virtio"), Annotation(kubevirtv1.DisablePCIHole64, "true")},
	"the root complex":                     {Disks(2, "virtio"), NICs(1, "virtio"), Annotation(kubevirtv1.PlacePCIDevicesOnRootComplex, "true")},
	"frozen interface slots":               {Disks(2, "virtio"), NICs(1, "virtio"), Annotation(kubevirtv1.PciTopologyVersionAnnotation, "v2"), Annotation(kubevirtv1.PciInterfaceSlotCountAnnotation, "9")},
	"fewer frozen slots than interfaces":   {Disks(2, "virtio"), NICs(3, "virtio"), Annotation(kubevirtv1.PciInterfaceSlotCountAnnotation, "2")},
	"a disk with an address of the user's": {DiskAt("0000:0a:00.0"), Disks(2, "virtio"), NICs(1, "virtio")},
	"an interface with an address":         {Disks(2, "virtio"), NICAt("0000:05:00.0"), NICs(1, "virtio")},
	"a disk on the root bus":               {DiskAt("0000:00:1c.0"), Disks(1, "virtio"), NICs(1, "virtio")},
	"an arm64 VM":                          {Disks(2, "virtio"), NICs(1, "virtio"), With(func(s *kubevirtv1.VirtualMachineInstanceSpec, _ *kubevirtv1.Devices) { s.Architecture = "arm64" })},
	"an arm64 VM with SCSI":                {Disks(1, ""), Disks(2, "scsi"), NICs(2, "virtio"), Memory("8Gi"), With(func(s *kubevirtv1.VirtualMachineInstanceSpec, _ *kubevirtv1.Devices) { s.Architecture = "arm64" })},
	"a plugged-in disk": {Disks(2, "virtio"), NICs(1, "virtio"), With(func(s *kubevirtv1.VirtualMachineInstanceSpec, _ *kubevirtv1.Devices) {
		s.Volumes[1].DataVolume.Hotpluggable = true
	})},
	"a plugged-in disk among seven on SATA": {Disks(7, "sata"), Disks(1, "virtio"), NICs(1, "virtio"), With(func(s *kubevirtv1.VirtualMachineInstanceSpec, _ *kubevirtv1.Devices) {
		s.Volumes[1].DataVolume.Hotpluggable = true
	})},
}

// Cluster maps the host devices of the shapes to their kinds.
var Cluster = defaulting.Cluster{HostDevices: map[string]defaulting.HostDeviceKind{
	"mdev.com/vgpu": defaulting.HostDeviceMDev, "usb.com/stick": defaulting.HostDeviceUSB,
}}
