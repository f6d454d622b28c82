package launcher

import "libvirt.org/go/libvirtxml"

// readBack returns the part of libvirt's description that virt-launcher retains: the addresses
// of controllers, disks, host devices, inputs, watchdogs, the random number generator and the
// balloon. Its types have no field for the addresses of video, sound, vsock, panic devices and
// file systems, for the numbers of root ports, or for the multifunction flag of a slot; libvirt
// assigns those again. Interfaces are not read back, so libvirt assigns their addresses
// again as well.
func readBack(described, wanted *libvirtxml.DomainDeviceList) *libvirtxml.DomainDeviceList {
	kept := *wanted
	kept.Controllers = make([]libvirtxml.DomainController, len(described.Controllers))
	for i, controller := range described.Controllers {
		kept.Controllers[i] = libvirtxml.DomainController{
			Type: controller.Type, Index: controller.Index, Model: controller.Model, Address: single(controller.Address),
		}
	}
	kept.Disks = described.Disks
	for i := range kept.Disks {
		kept.Disks[i].Address = single(kept.Disks[i].Address)
	}
	kept.Hostdevs = described.Hostdevs
	for i := range kept.Hostdevs {
		kept.Hostdevs[i].Address = single(kept.Hostdevs[i].Address)
	}
	kept.Inputs = described.Inputs
	kept.Watchdogs = described.Watchdogs
	kept.RNGs = described.RNGs
	kept.MemBalloon = described.MemBalloon
	return &kept
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
