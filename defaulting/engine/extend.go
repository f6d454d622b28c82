package engine

import (
	"context"

	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/domain"
)

// extend writes the addresses of disks that are added to a running VM: each on the first root
// port above all that are in use. Nothing else is written, because a change of the template
// would require a restart.
func (e *Engine) extend(ctx context.Context, a *answering, vm *kubevirtv1.VirtualMachine, prepared *domain.PreparedVM) error {
	if len(a.request.OldVM) == 0 {
		return defaulting.Malformed("an update of a running VirtualMachine needs its oldVM")
	}
	old, _, err := decode(a.request.OldVM)
	if err != nil {
		return err
	}
	added := addedDisks(old, vm, prepared)
	if len(added) == 0 || old.Spec.Template == nil {
		return nil
	}
	all := a.prepare(old)
	before := all[0]
	bounds := limitsOf(old, before, a)
	if bounds.addresses != "" {
		a.skipAddresses(bounds.addresses)
		return nil
	}
	if len(domain.Check(before)) > 0 {
		a.skipAddresses("the stored VirtualMachine has invalid addresses")
		return nil
	}
	found, err := e.agreed(ctx, a, all)
	if err != nil {
		return err
	}
	if found.rejection != "" {
		a.skipAddresses("libvirt rejects the stored VM: " + found.rejection)
		return nil
	}
	if found.differs {
		a.skipAddresses("KubeVirt is being updated, and its releases assign different addresses")
		return nil
	}
	bus := domain.HighestBus(prepared, found.layout)
	for _, index := range added {
		bus++
		path := domain.DiskAddress(index)
		if found.layout.Buses[bus] != "pcie-root-port" {
			a.skip(path.String(), "the running VM has no free root port above those in use")
			continue
		}
		a.set(domain.Set{Path: path, Value: domain.Address{Bus: bus}.String(), Source: defaulting.FromLibvirt})
	}
	return nil
}

// addedDisks returns the virtio disks that the stored VirtualMachine does not have and that
// have no address. A disk that the defaults add is not written here, so its address cannot be
// written either.
func addedDisks(old, vm *kubevirtv1.VirtualMachine, prepared *domain.PreparedVM) []int {
	had := map[string]bool{}
	if old.Spec.Template != nil {
		for _, disk := range old.Spec.Template.Spec.Domain.Devices.Disks {
			had[disk.Name] = true
		}
	}
	var added []int
	for i := range vm.Spec.Template.Spec.Domain.Devices.Disks {
		written := vm.Spec.Template.Spec.Domain.Devices.Disks[i].Disk
		disk := &prepared.Spec.Domain.Devices.Disks[i]
		if !had[disk.Name] && written != nil && disk.Disk.Bus == kubevirtv1.DiskBusVirtio && disk.Disk.PciAddress == "" {
			added = append(added, i)
		}
	}
	return added
}
