package domain

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/defaulting"
)

// machineTypePattern is the accepted format of a machine type, the only user-specified text
// that is passed to libvirt.
var machineTypePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Check returns what the user must change before the VirtualMachine can be defined: an unknown
// architecture, a malformed machine type, numbers of CPUs that no guest has, lists that are too
// long, and PCI addresses that are malformed, out of range, shared by two devices or on a bus
// without PCI addresses.
func Check(m *PreparedVM) []defaulting.Cause {
	if _, known := defaultMachineTypes[m.Spec.Architecture]; !known {
		return []defaulting.Cause{{
			Path: In("architecture").String(), Value: fmt.Sprintf("%.64s", m.Spec.Architecture),
			Detail: "KubeVirt has the architectures " + strings.Join(slices.Sorted(maps.Keys(defaultMachineTypes)), ", "),
		}}
	}
	causes := impossibleCPUs(&m.Spec)
	if machineType := m.Spec.Domain.Machine.Type; !machineTypePattern.MatchString(machineType) {
		causes = append(causes, defaulting.Cause{
			Path:   In("domain", "machine", "type").String(),
			Value:  fmt.Sprintf("%.64q", machineType),
			Detail: "a machine type consists of letters, digits, dots, dashes and underscores",
		})
	}
	causes = append(causes, tooMany(&m.Spec)...)
	if len(causes) > 0 {
		return causes
	}
	holders := map[Address]string{}
	for _, placed := range placedDevices(&m.Spec) {
		cause := func(detail string) {
			causes = append(causes, defaulting.Cause{Path: placed.path, Value: fmt.Sprintf("%.64s", placed.address), Detail: detail})
		}
		address, err := ParseAddress(placed.address)
		if err != nil {
			cause(err.Error())
			continue
		}
		if detail := outOfRange(address); detail != "" {
			cause(detail)
			continue
		}
		if holder, taken := holders[address]; taken {
			cause(fmt.Sprintf("%s and %s both have address %s", placed.device, holder, address))
			continue
		}
		holders[address] = placed.device
		if placed.bus != "" && placed.bus != kubevirtv1.DiskBusVirtio {
			cause(fmt.Sprintf("%s is on the bus %s, and only disks on virtio have a PCI address", placed.device, placed.bus))
		}
	}
	if text, ok := m.Annotations[kubevirtv1.PciInterfaceSlotCountAnnotation]; ok {
		if _, err := strconv.Atoi(text); err != nil {
			causes = append(causes, defaulting.Cause{
				Path:   fmt.Sprintf("spec.template.metadata.annotations[%s]", kubevirtv1.PciInterfaceSlotCountAnnotation),
				Detail: "must be a number",
			})
		}
	}
	return causes
}

// impossibleCPUs returns the limit and the request of CPUs that the sockets of a guest cannot be
// taken from. KubeVirt takes the last 32 bits of such a number.
func impossibleCPUs(spec *vmSpec) []defaulting.Cause {
	var causes []defaulting.Cause
	path := In("domain", "resources")
	for _, list := range []struct {
		name string
		of   corev1.ResourceList
	}{{"limits", spec.Domain.Resources.Limits}, {"requests", spec.Domain.Resources.Requests}} {
		quantity, given := list.of[corev1.ResourceCPU]
		if given && (quantity.Sign() < 0 || quantity.CmpInt64(math.MaxUint32) > 0) {
			causes = append(causes, defaulting.Cause{
				Path: path.Then(list.name, "cpu").String(), Value: quantity.String(), Detail: fmt.Sprintf("must be between 0 and %d", uint32(math.MaxUint32)),
			})
		}
	}
	return causes
}

// maxDevices is how many items KubeVirt's API allows in its longest lists. Admission runs
// before schema validation, so the limit is checked here as well.
const maxDevices = 256

func tooMany(spec *vmSpec) []defaulting.Cause {
	var causes []defaulting.Cause
	devices := &spec.Domain.Devices
	for _, list := range []struct {
		name  string
		count int
	}{
		{"disks", len(devices.Disks)}, {"interfaces", len(devices.Interfaces)}, {"gpus", len(devices.GPUs)},
		{"hostDevices", len(devices.HostDevices)}, {"filesystems", len(devices.Filesystems)}, {"inputs", len(devices.Inputs)},
		{"panicDevices", len(devices.PanicDevices)},
	} {
		if list.count > maxDevices {
			causes = append(causes, defaulting.Cause{
				Path: devicesPath.Then(list.name).String(), Value: strconv.Itoa(list.count), Detail: fmt.Sprintf("there are at most %d", maxDevices),
			})
		}
	}
	return causes
}

// maxBus is the highest bus for which virt-launcher creates a root port.
const maxBus = 31

// outOfRange returns why no device can have an address, or an empty string.
func outOfRange(address Address) string {
	switch {
	case address.Domain != 0:
		return "a guest has only the PCI domain 0000"
	case address.Bus > maxBus:
		return fmt.Sprintf("a guest has the PCI buses 00 to %x", maxBus)
	case address.Slot > maxBus:
		return fmt.Sprintf("a PCI bus has the slots 00 to %x", maxBus)
	case address.Bus == 0 && address.Slot == 0:
		return "0000:00:00 is the host bridge of the guest itself"
	}
	return ""
}

// placed is a device with a user-specified address.
type placed struct {
	device  string
	path    string
	address string
	bus     kubevirtv1.DiskBus
}

func placedDevices(spec *vmSpec) []placed {
	var list []placed
	for i := range spec.Domain.Devices.Disks {
		disk := &spec.Domain.Devices.Disks[i]
		if disk.Disk == nil || disk.Disk.PciAddress == "" {
			continue
		}
		path := disksPath.Then(item(i))
		list = append(list, placed{
			device: "the disk at " + path.String(), path: path.Then("disk", "pciAddress").String(),
			address: disk.Disk.PciAddress, bus: disk.Disk.Bus,
		})
	}
	for i := range spec.Domain.Devices.Interfaces {
		nic := &spec.Domain.Devices.Interfaces[i]
		if nic.PciAddress == "" || nic.State == kubevirtv1.InterfaceStateAbsent {
			continue
		}
		path := interfacesPath.Then(item(i))
		list = append(list, placed{
			device: "the interface at " + path.String(), path: path.Then("pciAddress").String(), address: nic.PciAddress,
		})
	}
	return list
}

func slotCount(annotations map[string]string) *int {
	text, ok := annotations[kubevirtv1.PciInterfaceSlotCountAnnotation]
	if !ok {
		return nil
	}
	count, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	return &count
}

// Holders returns the paths of the devices that request an address.
func Holders(m *PreparedVM, address string) []string {
	wanted, err := ParseAddress(address)
	if err != nil {
		return nil
	}
	var paths []string
	for _, placed := range placedDevices(&m.Spec) {
		if at, err := ParseAddress(placed.address); err == nil && at == wanted {
			paths = append(paths, placed.path)
		}
	}
	return paths
}

// HighestBus returns the highest bus in use by a layout or requested by a device of the
// VirtualMachine.
func HighestBus(m *PreparedVM, layout *Layout) uint {
	highest := uint(0)
	for _, device := range layout.Devices {
		highest = max(highest, device.Address.Bus)
	}
	for _, placed := range placedDevices(&m.Spec) {
		if at, err := ParseAddress(placed.address); err == nil {
			highest = max(highest, at.Bus)
		}
	}
	return highest
}
