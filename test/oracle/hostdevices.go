package oracle

import (
	"fmt"

	virtv1 "kubevirt.io/api/core/v1"
	convertertypes "kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/converter/types"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/device/hostdevice/generic"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/device/hostdevice/gpu"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/device/hostdevice/sriov"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/shapes"
	"github.com/vmstencil/stencil/defaulting"
)

// pool allocates devices of a node that has as many as are requested.
type pool struct {
	kind defaulting.HostDeviceKind
	// next is shared, so that no two devices are the same one.
	next *int
}

// Pop implements hostdevice.AddressPooler.
func (p pool) Pop(resource string) (string, error) {
	kind, found := shapes.Cluster.HostDevices[resource]
	if !found {
		kind = defaulting.HostDevicePCI
	}
	if kind != p.kind {
		return "", fmt.Errorf("%s is no %s device", resource, p.kind)
	}
	*p.next++
	switch kind {
	case defaulting.HostDeviceMDev:
		return fmt.Sprintf("00000000-0000-4000-8000-%012x", *p.next), nil
	case defaulting.HostDeviceUSB:
		return fmt.Sprintf("1:%d", *p.next), nil
	}
	return fmt.Sprintf("ffff:%02x:00.0", *p.next), nil
}

// addHostDevices has KubeVirt create the host devices of a VM.
func addHostDevices(context *convertertypes.ConverterContext, instance *virtv1.VirtualMachineInstance) error {
	devices := &instance.Spec.Domain.Devices
	next := 0
	of := func(kind defaulting.HostDeviceKind) pool { return pool{kind, &next} }
	var err error
	if context.GenericHostDevices, err = generic.CreateHostDevicesFromPools(devices.HostDevices,
		of(defaulting.HostDevicePCI), of(defaulting.HostDeviceMDev), of(defaulting.HostDeviceUSB)); err != nil {
		return fmt.Errorf("making the host devices: %w", err)
	}
	if context.GPUHostDevices, err = gpu.CreateHostDevicesFromPools(devices.GPUs, of(defaulting.HostDevicePCI), of(defaulting.HostDeviceMDev)); err != nil {
		return fmt.Errorf("making the GPUs: %w", err)
	}
	var functions []virtv1.Interface
	for i := range devices.Interfaces {
		if devices.Interfaces[i].SRIOV != nil && devices.Interfaces[i].State != virtv1.InterfaceStateAbsent {
			functions = append(functions, devices.Interfaces[i])
		}
	}
	if context.SRIOVDevices, err = sriov.CreateHostDevicesFromIfacesAndPool(functions, of(defaulting.HostDevicePCI)); err != nil {
		return fmt.Errorf("making the SR-IOV functions: %w", err)
	}
	return nil
}
