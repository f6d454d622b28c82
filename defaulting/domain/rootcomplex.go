package domain

import (
	kubevirtv1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

// pciSlots calls a function with the address of every device that KubeVirt counts as a PCI
// device of a domain, in KubeVirt's order. KubeVirt counts some that are not, such as a USB
// controller and a balloon with model none, and omits video, sound, vsock and file systems. The
// number of root ports depends on this count.
func pciSlots(devices *libvirtxml.DomainDeviceList, visit func(address **libvirtxml.DomainAddress)) {
	call := func(address **libvirtxml.DomainAddress) {
		if *address == nil || (*address).PCI != nil {
			visit(address)
		}
	}
	for i := range devices.Interfaces {
		call(&devices.Interfaces[i].Address)
	}
	for i := range devices.Hostdevs {
		if devices.Hostdevs[i].SubsysPCI != nil {
			call(&devices.Hostdevs[i].Address)
		}
	}
	for i := range devices.Controllers {
		if model := devices.Controllers[i].Model; model != "pci-root" && model != "pcie-root" {
			call(&devices.Controllers[i].Address)
		}
	}
	for i := range devices.Disks {
		if devices.Disks[i].Target.Bus == string(kubevirtv1.DiskBusVirtio) {
			call(&devices.Disks[i].Address)
		}
	}
	for i := range devices.Inputs {
		if devices.Inputs[i].Bus == kubevirtv1.VirtIO {
			call(&devices.Inputs[i].Address)
		}
	}
	for i := range devices.Watchdogs {
		call(&devices.Watchdogs[i].Address)
	}
	for i := range devices.RNGs {
		call(&devices.RNGs[i].Address)
	}
	if devices.MemBalloon != nil {
		call(&devices.MemBalloon.Address)
	}
}

// CountPCI returns the number of PCI devices that KubeVirt counts in a domain.
func CountPCI(devices *libvirtxml.DomainDeviceList) int {
	count := 0
	pciSlots(devices, func(**libvirtxml.DomainAddress) { count++ })
	return count
}

// placeOnRootComplex assigns each device without an address the next slot of bus 0, skipping
// the slots that KubeVirt reserves: 0, 1 for VGA, 1b for sound, 1f for SATA. KubeVirt does not
// start a VM with more devices than slots; here the remaining devices have no address. None of
// these addresses is written.
func placeOnRootComplex(devices *libvirtxml.DomainDeviceList) {
	slot := uint(1)
	pciSlots(devices, func(address **libvirtxml.DomainAddress) {
		if *address != nil {
			return
		}
		if slot++; slot == 0x1b || slot == 0x1f {
			slot++
		}
		if slot <= maxBus {
			*address = (&Address{Slot: slot}).domain()
		}
	})
}
