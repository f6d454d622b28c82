package launcher

import (
	"libvirt.org/go/libvirtxml"

	"github.com/vmstencil/stencil/defaulting/domain"
)

const (
	// slots is the default number of interfaces that a VM has room for, its own included.
	slots = 4
	// maxPlaceholders bounds the number that an annotation can request.
	maxPlaceholders = 32
	// maxIndex is the highest index of a root port.
	maxIndex = 31
)

// Total number of root ports, and minimum number of free ones, for VMs up to 2 GiB and above.
const (
	smallTotal, smallFree = 8, 3
	largeTotal, largeFree = 16, 6
)

// ports is what is added to a domain so that devices can be hotplugged.
type ports struct {
	// placeholders is the number of interfaces that only the first define has.
	placeholders int
	// appended is the number of empty root ports in the last define.
	appended int
}

// portsOf computes the ports of a shape. devices is the number of PCI devices that KubeVirt
// counts in the domain.
func portsOf(shape domain.Shape, devices int) ports {
	if shape.NoHotplug {
		return ports{}
	}
	var p ports
	switch {
	case shape.SlotCount != nil:
		p.placeholders = min(max(0, *shape.SlotCount-shape.Interfaces), maxPlaceholders)
	case !shape.RootComplex && shape.Interfaces > 0:
		p.placeholders = max(0, slots-shape.Interfaces)
	}
	if shape.RootComplex {
		return p
	}
	total, free := smallTotal, smallFree
	if shape.LargeMemory {
		total, free = largeTotal, largeFree
	}
	p.appended = max(0, max(total-devices, free)-p.placeholders)
	return p
}

// appendRootPorts adds root ports above the highest existing index.
func appendRootPorts(devices *libvirtxml.DomainDeviceList, count int) {
	next := uint(1)
	for _, controller := range devices.Controllers {
		if controller.Type == "pci" && controller.Index != nil && *controller.Index >= next {
			next = *controller.Index + 1
		}
	}
	for range count {
		if next > maxIndex {
			return
		}
		index := next
		devices.Controllers = append(devices.Controllers, libvirtxml.DomainController{Type: "pci", Index: &index, Model: "pcie-root-port"})
		next++
	}
}
