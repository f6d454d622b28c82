package guest

import (
	"fmt"
	"slices"

	virtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/shapes"
)

// Changes has a VM started twice: as it is stored first, and when a disk was added to it and an interface removed. It returns what the guests
// saw, and what they saw otherwise than it is stored, or at another place than before.
//
// Store returns a VirtualMachine with its defaults, and run what the guest of a stored one sees.
func Changes(store func(*virtv1.VirtualMachine) (*virtv1.VirtualMachine, error), run func(*virtv1.VirtualMachine) (*Seen, error)) (guests [2]*Seen, differences []string, err error) {
	machine := shapes.New(shapes.Disks(2, virtv1.DiskBusVirtio), shapes.CDROMs(1, virtv1.DiskBusSATA), shapes.NICs(2, virtv1.VirtIO), shapes.NICs(1, "e1000e"), shapes.Memory("512Mi"))
	requested := &shapes.SpecOf(machine).Domain
	requested.CPU = &virtv1.CPU{Sockets: 2, Cores: 2, Threads: 1}
	requested.Firmware.Serial = "stencil-4711"
	var stored [2]*virtv1.VirtualMachine
	for i := range stored {
		if stored[i], err = store(machine); err != nil {
			return guests, nil, fmt.Errorf("storing the VM: %w", err)
		}
		if guests[i], err = run(stored[i]); err != nil {
			return guests, nil, err
		}
		differences = append(differences, guests[i].Differences(stored[i])...)
		machine = stored[i].DeepCopy()
		shapes.AddDisk(machine, virtv1.DiskDevice{Disk: &virtv1.DiskTarget{Bus: virtv1.DiskBusVirtio}})
		devices, spec := shapes.DevicesOf(machine), shapes.SpecOf(machine)
		devices.Interfaces, spec.Networks = slices.Delete(devices.Interfaces, 1, 2), slices.Delete(spec.Networks, 1, 2)
	}
	first, second := Addresses(stored[0]), Addresses(stored[1])
	for _, name := range []string{"volume-0", "volume-1", "net-0", "net-2"} {
		if before, after := guests[0].Paths[first[name]], guests[1].Paths[second[name]]; before != after || before == "" {
			differences = append(differences, fmt.Sprintf("%s moves from %s to %s when a disk is added and an interface removed", name, before, after))
		}
	}
	return guests, differences, nil
}
