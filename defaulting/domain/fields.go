package domain

import "github.com/vmstencil/stencil/defaulting"

// Persistence is the condition under which a default is written into the stored VirtualMachine.
type Persistence string

// The conditions under which a default is written.
const (
	// Always is written regardless of the policy.
	Always Persistence = "yes"
	// Never is read but not written.
	Never Persistence = "no"
	// The others depend on the policy field of the same name.
	ByMachineType  Persistence = "machineType: pin"
	ByPCIAddress   Persistence = "pciAddress"
	ByFirmwareUUID Persistence = "firmwareUUID"
	ByMAC          Persistence = "mac: generate"
	ByCPU          Persistence = "cpu"
	ByMemory       Persistence = "memory"
)

// Field is a row of the table: one field of a VirtualMachine and its default.
type Field struct {
	// Path is the path of the field, with [*] for any item of a list.
	Path string
	// Domain is the location in the libvirt domain. It is empty for a field that is not part of
	// it.
	Domain string
	// Default describes the value.
	Default string
	// By is the source of the default when no preference sets another.
	By defaulting.Source
	// Persisted is the condition under which it is written.
	Persisted Persistence
	// Why is the reason for Persisted.
	Why string
}

// templateSpec is the prefix of the paths of the guest's fields.
const templateSpec = "spec.template.spec."

// Fields is the table. Prepare fills only fields that have a row.
var Fields = []Field{
	// Decided by libvirt.
	{"domain.machine.type", "os/type/@machine", "the version that an alias stands for: q35 is pc-q35-X.Y", defaulting.FromLibvirt, ByMachineType, "an alias stands for another version after an upgrade of the nodes"},
	{"domain.devices.disks[*].disk.pciAddress", "devices/disk/address", "where virt-launcher would put it", defaulting.FromLibvirt, ByPCIAddress, "a device that is added or removed moves others"},
	{"domain.devices.interfaces[*].pciAddress", "devices/interface/address", "where virt-launcher would put it", defaulting.FromLibvirt, ByPCIAddress, "the name of an interface in the guest follows its address"},

	// Identity.
	{"domain.firmware.uuid", "", "random", defaulting.FromStencil, ByFirmwareUUID, "guests are licensed and identified by it; libvirt is never shown it"},
	{"domain.devices.interfaces[*].macAddress", "", "random, locally administered", defaulting.FromStencil, ByMAC, "left to KubeVirt and to pool managers unless enabled"},

	// Properties of the guest.
	{"architecture", "os/type/@arch", "that of the cluster", defaulting.FromKubeVirt, Always, "a cluster's default can change"},
	{"domain.firmware.bootloader.bios", "os/loader", "from the preference", defaulting.FromPreference, Always, "another firmware does not boot the same disk"},
	{"domain.firmware.bootloader.bios.useSerial", "", "from the preference", defaulting.FromPreference, Always, "where the firmware's messages go"},
	{"domain.firmware.bootloader.efi", "os/loader", "on arm64, and if the preference sets it", defaulting.FromKubeVirt, Always, "another firmware does not boot the same disk"},
	{"domain.firmware.bootloader.efi.secureBoot", "os/loader/@secure", "false on arm64, else from the preference", defaulting.FromKubeVirt, Always, "what may boot"},
	{"domain.features.acpi.enabled", "features/acpi", "true", defaulting.FromKubeVirt, Always, "a guest without ACPI finds other devices"},
	{"domain.cpu.sockets", "", "from requests or limits, else 1", defaulting.FromKubeVirt, ByCPU, "guests are licensed by it; never with an instance type"},
	{"domain.cpu.cores", "", "1", defaulting.FromKubeVirt, ByCPU, "as sockets"},
	{"domain.cpu.threads", "", "1", defaulting.FromKubeVirt, ByCPU, "as sockets"},
	{"domain.cpu.model", "", "host-model; host-passthrough on arm64", defaulting.FromKubeVirt, Never, "what it expands to is the node's, and migration decides on it"},
	{"domain.memory.guest", "memory", "from requests or limits", defaulting.FromKubeVirt, ByMemory, "what the guest sees must not follow a change of the pod's; never with an instance type"},

	// Devices.
	{"domain.devices.disks[*]", "devices/disk", "a disk for each volume that has none", defaulting.FromKubeVirt, Always, "its place among the others"},
	{"domain.devices.disks[*].disk", "devices/disk/@device", "a disk without a device type", defaulting.FromKubeVirt, Always, "what the guest finds"},
	{"domain.devices.disks[*].disk.bus", "devices/disk/target/@bus", "sata; virtio on arm64", defaulting.FromKubeVirt, Always, "another bus needs another driver; once it is set, preferences do not apply"},
	{"domain.devices.disks[*].cdrom.bus", "devices/disk/target/@bus", "sata; virtio on arm64", defaulting.FromKubeVirt, Always, "as for disks"},
	{"domain.devices.disks[*].lun.bus", "devices/disk/target/@bus", "sata; virtio on arm64", defaulting.FromKubeVirt, Always, "as for disks"},
	{"domain.devices.disks[*].cdrom.readonly", "devices/disk/readonly", "true", defaulting.FromKubeVirt, Always, "what the guest may do"},
	{"domain.devices.disks[*].cdrom.tray", "", "closed", defaulting.FromKubeVirt, Always, "what the guest finds"},
	{"domain.devices.interfaces", "devices/interface", "one on the pod network, with the binding of the cluster's configuration", defaulting.FromKubeVirt, Always, "a cluster's default can change"},
	{"networks", "", "the pod network, with that interface", defaulting.FromKubeVirt, Always, "an interface needs its network"},
	{"domain.devices.interfaces[*].model", "devices/interface/model/@type", "virtio", defaulting.FromKubeVirt, Always, "another model needs another driver"},
	{"domain.devices.interfaces[*].masquerade", "", "from the preference", defaulting.FromPreference, Always, "an interface needs a binding"},
	{"domain.devices.inputs", "devices/input", "one if autoattachInputDevice is true", defaulting.FromKubeVirt, Always, "its place among the others"},
	{"domain.devices.inputs[*].bus", "devices/input/@bus", "usb", defaulting.FromKubeVirt, Always, "a USB input needs a USB controller, which is a PCI device"},
	{"domain.devices.inputs[*].type", "devices/input/@type", "tablet", defaulting.FromKubeVirt, Always, "what the guest finds"},
	{"domain.devices.watchdog.i6300esb", "devices/watchdog/@model", "on amd64", defaulting.FromKubeVirt, Always, "what the guest finds"},
	{"domain.devices.watchdog.i6300esb.action", "", "reset", defaulting.FromKubeVirt, Always, "what happens to the guest"},
	{"domain.devices.sound.model", "devices/sound/@model", "ich9", defaulting.FromKubeVirt, Always, "another model needs another driver"},
	{"domain.devices.rng", "devices/rng", "from the preference", defaulting.FromPreference, Always, "a PCI device"},
	{"domain.devices.tpm", "", "from the preference", defaulting.FromPreference, Always, "what the guest finds; not on PCI"},
	{"domain.devices.panicDevices[*].model", "devices/panic/@model", "from the preference", defaulting.FromPreference, Always, "pvpanic is a PCI device"},
	{"domain.devices.useVirtioTransitional", "@model of virtio devices", "from the preference", defaulting.FromPreference, Always, "moves every virtio device behind a PCI bridge"},
	{"domain.devices.disableHotplug", "devices/controller[@type='scsi']", "from the preference", defaulting.FromPreference, Always, "decides whether there is a SCSI controller"},
	{"domain.devices.autoattachGraphicsDevice", "devices/video", "from the preference", defaulting.FromPreference, Always, "a PCI device"},
	{"domain.devices.autoattachMemBalloon", "devices/memballoon", "from the preference", defaulting.FromPreference, Always, "a PCI device"},
	{"domain.devices.autoattachPodInterface", "", "from the preference", defaulting.FromPreference, Always, "decides whether there is an interface"},
	{"domain.devices.autoattachSerialConsole", "devices/controller[@type='virtio-serial']", "from the preference", defaulting.FromPreference, Always, "its controller is a PCI device"},
	{"domain.devices.autoattachInputDevice", "", "from the preference", defaulting.FromPreference, Always, "decides whether there is an input device"},

	// Read, and not changed.
	{"domain.devices.gpus[*]", "devices/hostdev", "", defaulting.FromKubeVirt, Never, "the API has no field for the address"},
	{"domain.devices.hostDevices[*]", "devices/hostdev", "", defaulting.FromKubeVirt, Never, "the API has no field for the address"},
	{"domain.devices.filesystems[*]", "devices/filesystem", "", defaulting.FromKubeVirt, Never, "the API has no field for the address"},
	{"domain.devices.video.type", "devices/video/model/@type", "vga; bochs with EFI; virtio on arm64", defaulting.FromKubeVirt, Never, "behind a feature gate in the API; video memory is libvirt's"},
	{"domain.devices.autoattachVSOCK", "devices/vsock", "", defaulting.FromKubeVirt, Never, "the API has no field for the address"},
	{"domain.devices.blockMultiQueue", "", "", defaulting.FromPreference, Never, "applied again from the preference at each start"},
	{"domain.features.hyperv", "", "", defaulting.FromPreference, Never, "an absent `enabled` means true; applied again from the preference at each start"},
	{"domain.clock", "", "", defaulting.FromPreference, Never, "applied again from the preference at each start"},
	{"domain.launchSecurity", "", "", defaulting.FromKubeVirt, Never, "moves no device"},
	{"domain.ioThreadsPolicy", "", "", defaulting.FromKubeVirt, Never, "backend, which the guest does not see"},
	{"domain.devices.disks[*].cache", "", "", defaulting.FromKubeVirt, Never, "backend, which the guest does not see"},
	{"domain.devices.disks[*].io", "", "", defaulting.FromKubeVirt, Never, "backend, which the guest does not see"},
	{"volumes[*]", "devices/disk/source", "`/mock/N`", defaulting.FromKubeVirt, Never, "backend: libvirt is shown a name that means nothing, and nothing of it comes back"},
}

// rows indexes Fields by path.
var rows = func() map[string]Field {
	index := make(map[string]Field, len(Fields))
	for i := range Fields {
		Fields[i].Path = templateSpec + Fields[i].Path
		index[Fields[i].Path] = Fields[i]
	}
	return index
}()
