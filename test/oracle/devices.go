package oracle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	virtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/guest"
	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/domain"
	"github.com/vmstencil/stencil/defaulting/launcher"
)

// devices are the PCI devices of a guest by address. A device that the VirtualMachine requests is identified by its field, every other one by its
// kind.
type devices map[string]string

// differences returns the differences between two guests, by address.
func (d devices) differences(other devices) []string {
	var list []string
	for _, address := range slices.Sorted(maps.Keys(d)) {
		if got := other[address]; got != d[address] {
			list = append(list, fmt.Sprintf("%s: KubeVirt has %q, the defaulter %q", address, d[address], got))
		}
	}
	for _, address := range slices.Sorted(maps.Keys(other)) {
		if _, found := d[address]; !found {
			list = append(list, fmt.Sprintf("%s: KubeVirt has nothing, the defaulter %q", address, other[address]))
		}
	}
	return list
}

// fields are the addresses of the devices that the VirtualMachine requests, by field.
func (d devices) fields() map[string]string {
	of := map[string]string{}
	for address, device := range d {
		if kind, field, found := strings.Cut(device, " "); found && kind != "controller" {
			of[field] = address
		}
	}
	return of
}

// mine returns the defaulter's layout of a VM.
func (r Release) mine(ctx context.Context, definer launcher.Definer, machine *virtv1.VirtualMachine, sizes sizes, cluster defaulting.Cluster) (devices, error) {
	release, known := domain.ReleaseOf(r.Version)
	if !known {
		return nil, fmt.Errorf("KubeVirt %s is not reproduced", r.Version)
	}
	prepared := domain.Prepare(machine, domain.Inputs{Instancetype: sizes.instancetype, Preference: sizes.preference, Cluster: cluster, Release: release})
	layout, err := launcher.Layout(ctx, definer, domain.NewShape(prepared, cluster))
	if err != nil {
		return nil, err
	}
	found := devices{}
	for _, device := range layout.Devices {
		text := device.Kind
		switch {
		case device.List != "":
			text += fmt.Sprintf(" %s[%d]", device.List, device.Index)
		case device.Kind == "controller":
			kind, model, _ := strings.Cut(device.Model, " ")
			text += " " + guest.ControllerName(kind, model, strconv.FormatUint(uint64(*device.Number), 10))
		}
		found[device.Address.String()] = text
	}
	return found, nil
}

// theirs returns KubeVirt's layout of a VM.
func (k kubeVirt) theirs(ctx context.Context, definer launcher.Definer, machine *virtv1.VirtualMachine, sizes sizes) (devices, error) {
	instance, err := k.instance(machine, sizes)
	if err != nil {
		return nil, err
	}
	spec, err := k.domain(instance)
	if err != nil {
		return nil, err
	}
	described, err := k.release.start(ctx, definer, instance, spec)
	if err != nil {
		return nil, err
	}
	return guest.Devices(described, aliases(&instance.Spec.Domain.Devices))
}

// aliases are the fields of the VirtualMachine by the names that KubeVirt has libvirt
// call the devices.
func aliases(asked *virtv1.Devices) map[string]string {
	fields := map[string]string{}
	for i, disk := range asked.Disks {
		fields["ua-"+disk.Name] = fmt.Sprintf("disks[%d]", i)
	}
	for i, nic := range asked.Interfaces {
		for _, prefix := range []string{"ua-", "ua-sriov-"} {
			fields[prefix+nic.Name] = fmt.Sprintf("interfaces[%d]", i)
		}
	}
	for i, gpu := range asked.GPUs {
		fields["ua-gpu-"+gpu.Name] = fmt.Sprintf("gpus[%d]", i)
	}
	for i, device := range asked.HostDevices {
		for _, prefix := range []string{"ua-hostdevice-", "ua-usb-host-"} {
			fields[prefix+device.Name] = fmt.Sprintf("hostDevices[%d]", i)
		}
	}
	return fields
}
