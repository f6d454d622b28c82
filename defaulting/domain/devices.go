package domain

import (
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/defaulting"
)

// Paths of the devices.
var (
	devicesPath    = In("domain", "devices")
	disksPath      = devicesPath.Then("disks")
	interfacesPath = devicesPath.Then("interfaces")
	inputsPath     = devicesPath.Then("inputs")
	firmwarePath   = In("domain", "firmware")
)

// setDeviceDefaults sets the defaults of KubeVirt's API that apply to every architecture.
func setDeviceDefaults(n *notes, spec *kubevirtv1.VirtualMachineInstanceSpec) {
	if spec.Domain.Features == nil {
		spec.Domain.Features = &kubevirtv1.Features{}
	}
	yes := true
	fillPointer(n, &spec.Domain.Features.ACPI.Enabled, &yes, defaulting.FromKubeVirt, In("domain", "features", "acpi", "enabled"))

	for i := range spec.Domain.Devices.Disks {
		disk := &spec.Domain.Devices.Disks[i]
		path := disksPath.Then(item(i))
		setDiskKind(n, disk, path)
		if disk.CDRom != nil {
			fillPointer(n, &disk.CDRom.ReadOnly, &yes, defaulting.FromKubeVirt, path.Then("cdrom", "readonly"))
			fill(n, &disk.CDRom.Tray, kubevirtv1.TrayStateClosed, defaulting.FromKubeVirt, path.Then("cdrom", "tray"))
		}
	}
	for i := range spec.Domain.Devices.Inputs {
		input := &spec.Domain.Devices.Inputs[i]
		path := inputsPath.Then(item(i))
		fill(n, &input.Bus, kubevirtv1.InputBusUSB, defaulting.FromKubeVirt, path.Then("bus"))
		fill(n, &input.Type, kubevirtv1.InputTypeTablet, defaulting.FromKubeVirt, path.Then("type"))
	}
}

// setDiskKind makes an entry that specifies no kind a disk.
func setDiskKind(n *notes, disk *kubevirtv1.Disk, path Path) {
	if disk.Disk != nil || disk.CDRom != nil || disk.LUN != nil {
		return
	}
	disk.Disk = &kubevirtv1.DiskTarget{}
	n.add(path.Then("disk"), map[string]any{}, defaulting.FromKubeVirt)
}

// setArchitectureDefaults sets the defaults that differ between architectures.
func setArchitectureDefaults(n *notes, spec *kubevirtv1.VirtualMachineInstanceSpec, release Release) {
	switch spec.Architecture {
	case ARM64:
		if spec.Domain.Firmware == nil {
			spec.Domain.Firmware = &kubevirtv1.Firmware{}
		}
		if spec.Domain.Firmware.Bootloader == nil {
			no := false
			spec.Domain.Firmware.Bootloader = &kubevirtv1.Bootloader{EFI: &kubevirtv1.EFI{SecureBoot: &no}}
			n.add(firmwarePath.Then("bootloader", "efi"), map[string]any{"secureBoot": false}, defaulting.FromKubeVirt)
		}
		if efi := spec.Domain.Firmware.Bootloader.EFI; efi != nil && release.ARMWithoutSecureBoot {
			no := false
			fillPointer(n, &efi.SecureBoot, &no, defaulting.FromKubeVirt, firmwarePath.Then("bootloader", "efi", "secureBoot"))
		}
		setBuses(n, spec, kubevirtv1.DiskBusVirtio)
	case S390X:
		setBuses(n, spec, kubevirtv1.DiskBusVirtio)
	default:
		setBuses(n, spec, kubevirtv1.DiskBusSATA)
		setWatchdog(n, spec)
	}
}

func setBuses(n *notes, spec *kubevirtv1.VirtualMachineInstanceSpec, bus kubevirtv1.DiskBus) {
	for i := range spec.Domain.Devices.Disks {
		disk := &spec.Domain.Devices.Disks[i]
		if field, path := busOf(disk, disksPath.Then(item(i))); field != nil {
			fill(n, field, bus, defaulting.FromKubeVirt, path)
		}
	}
}

// busOf returns the field that holds the bus of a disk, or nil for a disk without a kind.
func busOf(disk *kubevirtv1.Disk, path Path) (*kubevirtv1.DiskBus, Path) {
	switch {
	case disk.Disk != nil:
		return &disk.Disk.Bus, path.Then("disk", "bus")
	case disk.CDRom != nil:
		return &disk.CDRom.Bus, path.Then("cdrom", "bus")
	case disk.LUN != nil:
		return &disk.LUN.Bus, path.Then("lun", "bus")
	}
	return nil, nil
}

func setWatchdog(n *notes, spec *kubevirtv1.VirtualMachineInstanceSpec) {
	watchdog := spec.Domain.Devices.Watchdog
	if watchdog == nil {
		return
	}
	path := devicesPath.Then("watchdog", "i6300esb")
	if watchdog.I6300ESB == nil {
		watchdog.I6300ESB = &kubevirtv1.I6300ESBWatchdog{}
		n.add(path, map[string]any{}, defaulting.FromKubeVirt)
	}
	fill(n, &watchdog.I6300ESB.Action, kubevirtv1.WatchdogActionReset, defaulting.FromKubeVirt, path.Then("action"))
}

// setModels sets the models that KubeVirt uses where the VirtualMachine specifies none.
func setModels(n *notes, spec *kubevirtv1.VirtualMachineInstanceSpec) {
	for i := range spec.Domain.Devices.Interfaces {
		nic := &spec.Domain.Devices.Interfaces[i]
		if nic.SRIOV == nil {
			fill(n, &nic.Model, kubevirtv1.VirtIO, defaulting.FromKubeVirt, interfacesPath.Then(item(i), "model"))
		}
	}
	if sound := spec.Domain.Devices.Sound; sound != nil {
		fill(n, &sound.Model, "ich9", defaulting.FromKubeVirt, devicesPath.Then("sound", "model"))
	}
}

// DiskAddress returns the path of the address of a disk.
func DiskAddress(index int) Path { return disksPath.Then(item(index), "disk", "pciAddress") }

// InterfaceAddress returns the path of the address of an interface.
func InterfaceAddress(index int) Path { return interfacesPath.Then(item(index), "pciAddress") }

// InterfaceMAC returns the path of the MAC address of an interface.
func InterfaceMAC(index int) Path { return interfacesPath.Then(item(index), "macAddress") }
