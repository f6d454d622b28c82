package engine

import (
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/domain"
)

// limits are the reasons why something is not written. An empty string means that it may be
// written.
type limits struct {
	// defaults is about KubeVirt's own defaults.
	defaults string
	// machineType is about the version of the machine type.
	machineType string
	// addresses is about the addresses of PCI devices.
	addresses string
}

// hookSidecars is the annotation that lists user programs that change the domain.
const hookSidecars = "hooks.kubevirt.io/hookSidecars"

// limitsOf returns the limits of a request.
func limitsOf(vm *kubevirtv1.VirtualMachine, prepared *domain.PreparedVM, a *answering) limits {
	var l limits
	if vm.Spec.Preference != nil && a.request.Preference == nil {
		l.defaults = "the VirtualMachine has a preference, whose spec is not in the request"
		l.addresses = l.defaults
		l.machineType = a.chosen.machineType
		return l
	}
	if a.chosen.unknown != "" {
		l.machineType, l.addresses = a.chosen.unknown, a.chosen.unknown
		return l
	}
	l.machineType = a.chosen.machineType
	l.addresses = unplaceable(vm, prepared, a)
	return l
}

// unplaceable returns why the addresses would not be the same on the next start.
func unplaceable(vm *kubevirtv1.VirtualMachine, prepared *domain.PreparedVM, a *answering) string {
	spec, devices := &prepared.Spec, &prepared.Spec.Domain.Devices
	if vm.Spec.Instancetype != nil && a.request.Instancetype == nil {
		return "the VirtualMachine has an instance type, whose spec is not in the request"
	}
	if spec.Architecture != domain.AMD64 && spec.Architecture != domain.ARM64 {
		return "VMs of this architecture have no PCI addresses"
	}
	if prepared.Annotations[kubevirtv1.PlacePCIDevicesOnRootComplex] == "true" {
		return "with the annotation " + kubevirtv1.PlacePCIDevicesOnRootComplex + " KubeVirt numbers the devices itself at each start"
	}
	if prepared.Annotations[hookSidecars] != "" {
		return "hook sidecars can change the VM when it is started"
	}
	for i := range devices.Interfaces {
		nic := &devices.Interfaces[i]
		if binding := nic.Binding; binding != nil && !contains(a.request.Cluster.TapBindings, binding.Name) {
			return "the devices that a network binding plugin adds to the VM are unknown"
		}
	}
	if claimed(devices) || a.document.claimsNetwork() {
		return "the devices that a resource claim adds to the VM are unknown"
	}
	if spec.Architecture == domain.ARM64 && devices.Watchdog != nil {
		return "KubeVirt does not start a VM with a watchdog on this architecture"
	}
	return unpredictable(spec, a.request.Cluster)
}

// unpredictable returns why a feature of the cluster makes the addresses depend on more than the VM.
func unpredictable(spec *kubevirtv1.VirtualMachineInstanceSpec, cluster defaulting.Cluster) string {
	devices := &spec.Domain.Devices
	passedThrough := len(devices.GPUs) + len(devices.HostDevices)
	for i := range devices.Interfaces {
		if devices.Interfaces[i].SRIOV != nil {
			passedThrough++
		}
	}
	dedicated := spec.Domain.CPU != nil && spec.Domain.CPU.DedicatedCPUPlacement
	graphics := devices.AutoattachGraphicsDevice == nil || *devices.AutoattachGraphicsDevice
	switch {
	case cluster.NUMAAwarePCI && dedicated && passedThrough > 0:
		return "with the NUMA-aware PCI topology addresses depend on the node"
	case cluster.Plugins:
		return "plugins of KubeVirt can change the VM when it is started"
	case cluster.CrossArchitecture && graphics:
		return "a node of another architecture starts the VM without its graphics device"
	}
	return ""
}

// claimed reports whether a resource claim adds devices.
func claimed(devices *kubevirtv1.Devices) bool {
	for i := range devices.GPUs {
		if devices.GPUs[i].ClaimRequest != nil {
			return true
		}
	}
	for i := range devices.HostDevices {
		if devices.HostDevices[i].ClaimRequest != nil {
			return true
		}
	}
	return false
}

func contains(list []string, wanted string) bool {
	for _, item := range list {
		if item == wanted {
			return true
		}
	}
	return false
}
