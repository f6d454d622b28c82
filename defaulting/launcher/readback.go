package launcher

import "libvirt.org/go/libvirtxml"

// readBack returns the part of libvirt's description that virt-launcher retains: the addresses
// of controllers, disks, host devices, inputs, watchdogs, the random number generator and the
// balloon. Its types have no field for the addresses of video, sound, vsock, panic devices and
// file systems, for the numbers of root ports, or for the multifunction flag of a slot; libvirt
// assigns those again. Interfaces are not read back, so libvirt assigns their addresses
// again as well.
func readBack(described, wanted *libvirtxml.DomainDeviceList) *libvirtxml.DomainDeviceList {
	devices := *wanted
	devices.Controllers = make([]libvirtxml.DomainController, len(described.Controllers))
	for i, controller := range described.Controllers {
		devices.Controllers[i] = libvirtxml.DomainController{
			Type: controller.Type, Index: controller.Index, Model: controller.Model, Address: single(controller.Address),
		}
	}
	devices.Disks = described.Disks
	for i := range devices.Disks {
		devices.Disks[i].Address = single(devices.Disks[i].Address)
	}
	devices.Hostdevs = described.Hostdevs
	for i := range devices.Hostdevs {
		devices.Hostdevs[i].Address = single(devices.Hostdevs[i].Address)
	}
	devices.Inputs = described.Inputs
	devices.Watchdogs = described.Watchdogs
	devices.RNGs = described.RNGs
	devices.MemBalloon = described.MemBalloon
	return &devices
}

// single returns an address without the multifunction flag.
func single(address *libvirtxml.DomainAddress) *libvirtxml.DomainAddress {
	if address == nil || address.PCI == nil {
		return address
	}
	pci := *address.PCI
	pci.MultiFunction = ""
	return &libvirtxml.DomainAddress{PCI: &pci}
}
