package engine

import (
	"strings"

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
func limitsOf(vm *kubevirtv1.VirtualMachine, prepared *domain.PreparedVM, request *defaulting.Request) limits {
	var l limits
	if vm.Spec.Preference != nil && request.Preference == nil {
		l.defaults = "the VirtualMachine has a preference, whose spec is not in the request"
		l.addresses = l.defaults
		return l
	}
	if other := otherKubeVirt(request.Cluster.KubeVirt); other != "" {
		l.machineType, l.addresses = other, other
		return l
	}
	l.addresses = unplaceable(vm, prepared, request)
	return l
}

// otherKubeVirt returns a reason if the minor version of the cluster's KubeVirt differs from
// the reproduced one.
func otherKubeVirt(version string) string {
	if version == "" || minor(version) == minor(KubeVirt) {
		return ""
	}
	return "the cluster runs KubeVirt " + version + ", and the defaulter reproduces " + KubeVirt
}

// minor returns the version without its last part.
func minor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// unplaceable returns why the addresses would not be the same on the next start.
func unplaceable(vm *kubevirtv1.VirtualMachine, prepared *domain.PreparedVM, request *defaulting.Request) string {
	spec, devices := &prepared.Spec, &prepared.Spec.Domain.Devices
	if vm.Spec.Instancetype != nil && request.Instancetype == nil {
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
		if binding := nic.Binding; binding != nil && !contains(request.Cluster.TapBindings, binding.Name) {
			return "the devices that a network binding plugin adds to the VM are unknown"
		}
	}
	if claimed(devices) {
		return "the devices that a resource claim adds to the VM are unknown"
	}
	dedicated := spec.Domain.CPU != nil && spec.Domain.CPU.DedicatedCPUPlacement
	if request.Cluster.NUMAAwarePCI && dedicated && len(devices.GPUs)+len(devices.HostDevices) > 0 {
		return "with the NUMA-aware PCI topology addresses depend on the node"
	}
	return ""
}

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
