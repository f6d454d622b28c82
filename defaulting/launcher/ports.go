package launcher

import (
	"libvirt.org/go/libvirtxml"

	"github.com/vmstencil/stencil/defaulting/domain"
)

const (
	// slots is how many interfaces a machine has room for, its own among them, unless
	// it says otherwise.
	slots = 4
	// maxPlaceholders bounds what an annotation can ask for.
	maxPlaceholders = 32
	// maxIndex is the highest index that a root port is given.
	maxIndex = 31
)

// Root ports in all, and free ones at least, for machines up to 2 GiB and above.
const (
	smallTotal, smallFree = 8, 3
	largeTotal, largeFree = 16, 6
)

// ports says what is added to a machine so that devices can be plugged in later.
type ports struct {
	// placeholders are interfaces in the first define only.
	placeholders int
	// appended are empty root ports in the last one.
	appended int
}

// portsOf decides it. devices is how many PCI devices KubeVirt counts in the domain.
func portsOf(shape domain.Shape, devices int) ports {
	if shape.Architecture == domain.S390X {
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

// appendRootPorts adds root ports above the highest that there is.
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
