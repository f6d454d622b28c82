package shapes

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	kubevirtv1 "kubevirt.io/api/core/v1"
)

// Random returns options for a VirtualMachine with random devices of every kind.
func Random(random *rand.Rand) []Option {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	var options []Option
	maybe := func(one, of int, more ...Option) {
		if random.IntN(of) < one {
			options = append(options, more...)
		}
	}
	for range random.IntN(4) {
		options = append(options, Disks(1+random.IntN(4), kubevirtv1.DiskBus(pick("virtio", "virtio", "sata", "scsi", ""))))
	}
	maybe(1, 3, CDROMs(1+random.IntN(2), "sata"))
	maybe(1, 6, LUNs(1, "scsi"))
	for range random.IntN(4) {
		options = append(options, NICs(1+random.IntN(2), pick("virtio", "virtio", "virtio", "e1000e", "e1000", "rtl8139", "")))
	}
	maybe(1, 6, SRIOV(1+random.IntN(2)))
	maybe(1, 6, GPUs(1+random.IntN(2)))
	maybe(1, 8, HostDevice("mdev.com/vgpu"))
	maybe(1, 8, HostDevice("usb.com/stick"))
	maybe(1, 2, Memory(pick("512Mi", "2Gi", "2049Mi", "16Gi")))
	maybe(1, 5, EFI(random.IntN(2) == 0))
	maybe(1, 8, Annotation(kubevirtv1.PciInterfaceSlotCountAnnotation, strconv.Itoa(random.IntN(10))))
	device := func(change func(*kubevirtv1.Devices)) Option {
		return With(func(_ *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) { change(d) })
	}
	maybe(1, 3, device(func(d *kubevirtv1.Devices) { d.Rng = &kubevirtv1.Rng{} }))
	maybe(1, 6, device(func(d *kubevirtv1.Devices) { d.AutoattachMemBalloon = off() }))
	maybe(1, 6, device(func(d *kubevirtv1.Devices) { d.AutoattachGraphicsDevice = off() }))
	maybe(1, 6, device(func(d *kubevirtv1.Devices) { d.AutoattachSerialConsole = off() }))
	maybe(1, 6, device(func(d *kubevirtv1.Devices) { d.DisableHotplug = true }))
	maybe(1, 8, device(func(d *kubevirtv1.Devices) { d.AutoattachVSOCK = on() }))
	switch random.IntN(16) {
	case 0, 1:
		options = append(options, device(func(d *kubevirtv1.Devices) { d.UseVirtioTransitional = on() }))
	case 2:
		options = append(options, MachineType("pc"))
	default:
		// A transitional device cannot be behind a root port, and other machine types have none, so only
		// other devices get requested addresses.
		maybe(1, 12, DiskAt(fmt.Sprintf("0000:%02x:00.0", 1+random.IntN(20))))
		maybe(1, 12, NICAt("0000:15:00.0"))
	}
	maybe(1, 8, device(func(d *kubevirtv1.Devices) {
		d.Sound = &kubevirtv1.SoundDevice{Name: "s", Model: pick("", "ac97", "ich9")}
	}))
	maybe(1, 8, device(func(d *kubevirtv1.Devices) { d.Watchdog = &kubevirtv1.Watchdog{Name: "w"} }))
	maybe(1, 6, device(func(d *kubevirtv1.Devices) {
		d.Inputs = []kubevirtv1.Input{{Name: "t", Type: "tablet", Bus: kubevirtv1.InputBus(pick("usb", "virtio", ""))}}
	}))
	maybe(1, 10, Disks(1, "usb"))
	maybe(1, 10, device(func(d *kubevirtv1.Devices) {
		d.Filesystems = []kubevirtv1.Filesystem{{Name: "f", Virtiofs: &kubevirtv1.FilesystemVirtiofs{}}}
	}))
	maybe(1, 10, device(func(d *kubevirtv1.Devices) {
		d.PanicDevices = []kubevirtv1.PanicDevice{{}}
		if model := kubevirtv1.PanicDeviceModel(pick(string(kubevirtv1.Pvpanic), string(kubevirtv1.Isa), "")); model != "" {
			d.PanicDevices[0].Model = &model
		}
	}))
	maybe(1, 10, device(func(d *kubevirtv1.Devices) {
		if len(d.Interfaces) > 1 {
			d.Interfaces[0].State = kubevirtv1.InterfaceStateAbsent
		}
	}))
	maybe(1, 10, With(func(s *kubevirtv1.VirtualMachineInstanceSpec, d *kubevirtv1.Devices) {
		if len(d.Disks) > 1 {
			s.Volumes[1].DataVolume.Hotpluggable = true
		}
	}))
	maybe(1, 10, device(func(d *kubevirtv1.Devices) { d.ClientPassthrough = &kubevirtv1.ClientPassthroughDevices{} }))
	maybe(1, 10, With(func(s *kubevirtv1.VirtualMachineInstanceSpec, _ *kubevirtv1.Devices) { s.Architecture = "arm64" }))
	maybe(1, 12, Annotation(kubevirtv1.PlacePCIDevicesOnRootComplex, "true"))
	maybe(1, 12, Annotation(kubevirtv1.DisablePCIHole64, "true"))
	return options
}
