package domain

import (
	kubevirtv1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

// pciSlots calls a function with the address of every device that KubeVirt counts
// among the PCI devices of a domain, in KubeVirt's order. It counts some that are
// none, a USB controller without model and a balloon without, and misses video,
// sound, vsock and file systems; what depends on the number depends on that too.
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

// CountPCI is how many PCI devices KubeVirt counts in a domain.
func CountPCI(devices *libvirtxml.DomainDeviceList) int {
	count := 0
	pciSlots(devices, func(**libvirtxml.DomainAddress) { count++ })
	return count
}

// placeOnRootComplex gives each device without address the next slot of bus 0, past
// those that KubeVirt reserves: 0, 1 for VGA, 1b for sound, 1f for SATA. KubeVirt
// refuses to start a machine with more devices than slots; the rest is then without
// address here, and nothing of it is written in any case.
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
