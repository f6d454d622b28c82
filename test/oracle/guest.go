package oracle

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	virtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/shapes"
)

const (
	// guestVariable makes the test binary the process that runs a guest.
	guestVariable = "STENCIL_TEST_GUEST"
	// kernelVariable and busyboxVariable are the paths of the guests' kernel and of a static busybox.
	kernelVariable, busyboxVariable = "STENCIL_GUEST_KERNEL", "STENCIL_GUEST_BUSYBOX"
	// guestLimit bounds the run of a guest, which QEMU emulates.
	guestLimit = 5 * time.Minute
	// chipset are the devices of q35 that are not in a domain: the host bridge, the ISA bridge and the SMBus.
	chipset = "00.0 1f.0 1f.3"
)

//go:embed guestinit.sh
var guestInit []byte

// guest is what a guest sees.
type guest struct {
	uuid, serial string
	// packages, cores and cpus are the numbers of sockets, of cores in all of them, and of processors.
	packages, cores, cpus int
	// memory is the usable memory in bytes.
	memory int64
	// before and after are the PCI devices, before and after the hotplug, as VENDOR:DEVICE by their path from the root bus: "02.1/00.0".
	before, after map[string]string
	// paths are the paths of the PCI devices in the domain, by address.
	paths map[string]string
}

// CompareGuests starts a stored VM as KubeVirt would, with QEMU's emulation, a Linux kernel and storage and networks that hold nothing, and compares what
// the guest sees with what is stored. Then a disk is added to the VM, an interface removed from it, and a disk hotplugged.
func (r Release) CompareGuests(t *testing.T) {
	kernel, busybox := os.Getenv(kernelVariable), os.Getenv(busyboxVariable)
	if kernel == "" || busybox == "" {
		t.Fatalf("%s and %s are not set; hack/guest.sh sets them", kernelVariable, busyboxVariable)
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(kernel)
	if err != nil {
		t.Fatal(err)
	}
	o := r.newOracle(t)
	g := guests{oracle: o, kernel: image, initramfs: initramfs(program, guestInit)}

	machine := shapes.New(shapes.Disks(2, virtv1.DiskBusVirtio), shapes.CDROMs(1, virtv1.DiskBusSATA), shapes.NICs(2, virtv1.VirtIO), shapes.NICs(1, "e1000e"), shapes.Memory("512Mi"))
	domain := &shapes.SpecOf(machine).Domain
	domain.CPU = &virtv1.CPU{Sockets: 2, Cores: 2, Threads: 1}
	domain.Firmware.Serial = "stencil-4711"
	stored := o.stored(t, machine)
	seen := g.run(t, stored)
	compareGuest(t, stored, seen)
	stays(t, "an added disk", seen.before, seen.after, 1)

	changed := stored.DeepCopy()
	shapes.AddDisk(changed, virtv1.DiskDevice{Disk: &virtv1.DiskTarget{Bus: virtv1.DiskBusVirtio}})
	devices, spec := shapes.DevicesOf(changed), shapes.SpecOf(changed)
	devices.Interfaces, spec.Networks = slices.Delete(devices.Interfaces, 1, 2), slices.Delete(spec.Networks, 1, 2)
	changed = o.stored(t, changed)
	later := g.run(t, changed)
	compareGuest(t, changed, later)
	first, second := addressesOf(stored), addressesOf(changed)
	for _, name := range []string{"volume-0", "volume-1", "net-0", "net-2"} {
		if before, after := seen.paths[first[name]], later.paths[second[name]]; before != after || before == "" {
			t.Errorf("%s moves from %s to %s when a disk is added and an interface removed", name, before, after)
		}
	}
	fmt.Printf("%s with KubeVirt %s: 2 guests with %d and %d PCI devices, in %s\n", t.Name(), r.Version, len(seen.before), len(later.before), time.Since(o.began).Round(time.Second))
}

// stored returns a VM with its defaults.
func (o *oracle) stored(t *testing.T, machine *virtv1.VirtualMachine) *virtv1.VirtualMachine {
	t.Helper()
	answer, err := o.answer(context.Background(), t, machine, sizes{})
	if err != nil {
		t.Fatal(err)
	}
	stored := &virtv1.VirtualMachine{}
	if err := json.Unmarshal(answer.VM, stored); err != nil {
		t.Fatal(err)
	}
	return stored
}

// guests runs guests.
type guests struct {
	*oracle
	kernel, initramfs []byte
}

// addressesOf returns the stored addresses of disks and interfaces, by name.
func addressesOf(stored *virtv1.VirtualMachine) map[string]string {
	addresses := map[string]string{}
	devices := shapes.DevicesOf(stored)
	for _, each := range devices.Disks {
		if each.Disk != nil {
			addresses[each.Name] = each.Disk.PciAddress
		}
	}
	for _, each := range devices.Interfaces {
		addresses[each.Name] = each.PciAddress
	}
	return addresses
}

// compareGuest compares what a guest sees with the stored VM, and with the domain that KubeVirt starts.
func compareGuest(t *testing.T, stored *virtv1.VirtualMachine, seen guest) {
	t.Helper()
	domain := shapes.SpecOf(stored).Domain
	if seen.uuid != string(domain.Firmware.UUID) || seen.serial != domain.Firmware.Serial {
		t.Errorf("the guest has UUID %s and serial %s, and %s and %s are stored", seen.uuid, seen.serial, domain.Firmware.UUID, domain.Firmware.Serial)
	}
	sockets, cores := int(domain.CPU.Sockets), int(domain.CPU.Sockets*domain.CPU.Cores)
	if seen.packages != sockets || seen.cores != cores || seen.cpus != cores*int(domain.CPU.Threads) {
		t.Errorf("the guest has %d sockets, %d cores and %d processors, and %+v is stored", seen.packages, seen.cores, seen.cpus, *domain.CPU)
	}
	// The firmware keeps a little for itself.
	if missing := domain.Memory.Guest.Value() - seen.memory; missing < 0 || missing > 2<<20 {
		t.Errorf("the guest has %d bytes of memory, and %s are stored", seen.memory, domain.Memory.Guest)
	}
	const disk, nic, emulatedNIC = "0x1af4:0x1042", "0x1af4:0x1041", "0x8086:0x10d3"
	want := map[string]string{}
	for _, each := range domain.Devices.Disks {
		want[each.Name] = disk
	}
	for _, each := range domain.Devices.Interfaces {
		want[each.Name] = nic
		if each.Model != virtv1.VirtIO {
			want[each.Name] = emulatedNIC
		}
	}
	for name, address := range addressesOf(stored) {
		path := seen.paths[address]
		if address == "" || seen.before[path] != want[name] {
			t.Errorf("%s is stored at %q, which is %s in the guest, which has %q there, want %s", name, address, path, seen.before[path], want[name])
		}
	}
}

// stays checks that the devices of a guest stay where they are, and that a number of others was added.
func stays(t *testing.T, what string, before, after map[string]string, added int) {
	t.Helper()
	for path, device := range before {
		if after[path] != device {
			t.Errorf("with %s, the guest has %q at %s, before %q", what, after[path], path, device)
		}
	}
	if len(after) != len(before)+added {
		t.Errorf("with %s, the guest has %d devices, before %d", what, len(after), len(before))
	}
}
