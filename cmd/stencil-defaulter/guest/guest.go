// Package guest starts VMs with QEMU's emulation, a Linux kernel, and disks and networks that hold nothing, and returns what their guests see. It is for
// tests and the demo: stencil-defaulter starts no guest.
package guest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	virtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/defaulting/domain"
)

const (
	// rootVariable makes a program the process of a guest, and is the folder of its libvirt.
	rootVariable = "STENCIL_GUEST_ROOT"
	// kernelVariable and busyboxVariable are the paths of the guests' kernel and of a static busybox.
	kernelVariable, busyboxVariable = "STENCIL_GUEST_KERNEL", "STENCIL_GUEST_BUSYBOX"
	// limit bounds the run of a guest, which QEMU emulates.
	limit = 5 * time.Minute
	// chipset are the devices of q35 that are not in a domain: the host bridge, the ISA bridge and the SMBus.
	chipset = "00.0 1f.0 1f.3"
)

// PCI vendors and devices, as a guest's Linux prints them.
const (
	virtioDisk = "0x1af4:0x1042"
	virtioNIC  = "0x1af4:0x1041"
	intelNIC   = "0x8086:0x10d3"
)

//go:embed init.sh
var initScript []byte

// Programs are the programs of guests.
type Programs struct {
	kernel, initramfs []byte
}

// Find returns the programs that hack/guest.sh has chosen.
func Find() (Programs, error) {
	kernel, busybox := os.Getenv(kernelVariable), os.Getenv(busyboxVariable)
	if kernel == "" || busybox == "" {
		return Programs{}, fmt.Errorf("%s and %s are not set; hack/guest.sh sets them", kernelVariable, busyboxVariable)
	}
	image, err := os.ReadFile(kernel)
	if err != nil {
		return Programs{}, fmt.Errorf("reading the guests' kernel: %w", err)
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		return Programs{}, fmt.Errorf("reading the guests' busybox: %w", err)
	}
	return Programs{kernel: image, initramfs: initramfs(program, initScript)}, nil
}

// Domain is a domain to start: one that libvirt has described, or that of a VM.
type Domain struct {
	// Described is libvirt's description, with the addresses of the devices, and with processors and memory. It is ignored if VM is set.
	Described string `json:"described,omitempty"`
	// UUID and Serial of the firmware, which a description does not have.
	UUID   string `json:"uuid,omitempty"`
	Serial string `json:"serial,omitempty"`
	// VM is a VirtualMachine whose domain is the one that the defaulter lays out, with the processors, the memory and the firmware of the VirtualMachine.
	// It must not have an instance type.
	VM *virtv1.VirtualMachine `json:"vm,omitempty"`
}

// Seen is what a guest sees.
type Seen struct {
	UUID, Serial string
	// Packages, Cores and CPUs are the numbers of sockets, of cores in all of them, and of processors.
	Packages, Cores, CPUs int
	// Memory is the usable memory in bytes.
	Memory int64
	// Before and After are the PCI devices, before and after a disk was plugged in, as VENDOR:DEVICE by their path from the root bus: "02.1/00.0".
	Before, After map[string]string
	// Paths are the paths of the PCI devices in the domain, by address.
	Paths map[string]string
}

// Run starts a domain, plugs in a disk when its guest has printed what it sees, and returns what it has printed when it has ended.
func (p Programs) Run(ctx context.Context, d Domain) (*Seen, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	root, err := Folder("stencil-guest-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(root) }()
	for name, content := range map[string][]byte{"kernel": p.kernel, "initramfs": p.initramfs} {
		if err := os.WriteFile(filepath.Join(root, name), content, 0o644); err != nil {
			return nil, fmt.Errorf("preparing a guest: %w", err)
		}
	}
	if d.VM != nil {
		laidOut := Domain{}
		if err := call(ctx, root, d, &laidOut); err != nil {
			return nil, err
		}
		d = laidOut
	}
	seen := &Seen{}
	return seen, call(ctx, root, d, seen)
}

// call runs the process of a guest.
func call(ctx context.Context, root string, d Domain, result any) error {
	text, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("writing the domain: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	process := exec.CommandContext(ctx, self)
	process.Env = append(Environment(root), rootVariable+"="+root)
	process.Stdin = bytes.NewReader(text)
	var problems bytes.Buffer
	process.Stderr = &problems
	process.Cancel = func() error { return process.Process.Signal(syscall.SIGTERM) }
	process.WaitDelay = 10 * time.Second
	output, err := process.Output()
	if err != nil {
		return fmt.Errorf("running a guest: %w\n%s", err, problems.String())
	}
	if err := json.Unmarshal(output, result); err != nil {
		return fmt.Errorf("reading what the process of the guest prints: %w\n%s", err, output)
	}
	return nil
}

// Differences returns what a guest sees otherwise than it is stored in the VirtualMachine.
func (s *Seen) Differences(stored *virtv1.VirtualMachine) []string {
	var list []string
	differs := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	spec := stored.Spec.Template.Spec.Domain
	if s.UUID != string(spec.Firmware.UUID) || s.Serial != spec.Firmware.Serial {
		differs("the guest has UUID %s and serial %s, and %s and %s are stored", s.UUID, s.Serial, spec.Firmware.UUID, spec.Firmware.Serial)
	}
	sockets, cores, threads := topology(spec.CPU)
	if s.Packages != sockets || s.Cores != sockets*cores || s.CPUs != sockets*cores*threads {
		differs("the guest has %d sockets, %d cores and %d processors, and %d sockets of %d cores of %d threads are stored", s.Packages, s.Cores, s.CPUs, sockets, cores, threads)
	}
	// The firmware keeps a little for itself.
	if missing := spec.Memory.Guest.Value() - s.Memory; missing < 0 || missing > 2<<20 {
		differs("the guest has %d bytes of memory, and %s are stored", s.Memory, spec.Memory.Guest)
	}
	for address, path := range s.Paths {
		if _, found := s.Before[path]; !found {
			differs("the guest has nothing at %s, which is %s in the domain", path, address)
		}
	}
	known := slices.Collect(maps.Values(s.Paths))
	for path, device := range s.Before {
		if !slices.Contains(known, path) && !slices.Contains(strings.Fields(chipset), path) {
			differs("the guest has %s at %s, where the domain has nothing", device, path)
		}
	}
	want := map[string]string{}
	for _, each := range spec.Devices.Disks {
		want[each.Name] = virtioDisk
	}
	for _, each := range spec.Devices.Interfaces {
		want[each.Name] = virtioNIC
		if each.Model != virtv1.VirtIO {
			want[each.Name] = intelNIC
		}
	}
	for name, address := range Addresses(stored) {
		if path := s.Paths[address]; address == "" || s.Before[path] != want[name] {
			differs("%s is stored at %q, which is %s in the guest, which has %q there, want %s", name, address, path, s.Before[path], want[name])
		}
	}
	for path, device := range s.Before {
		if s.After[path] != device {
			differs("with a disk plugged in, the guest has %q at %s, before %q", s.After[path], path, device)
		}
	}
	if len(s.After) != len(s.Before)+1 {
		differs("with a disk plugged in, the guest has %d devices, before %d", len(s.After), len(s.Before))
	}
	return list
}

// Addresses returns the stored addresses of the virtio disks and the interfaces of a VirtualMachine, by name.
func Addresses(stored *virtv1.VirtualMachine) map[string]string {
	addresses := map[string]string{}
	devices := stored.Spec.Template.Spec.Domain.Devices
	for _, each := range devices.Disks {
		if each.Disk != nil && each.Disk.Bus == virtv1.DiskBusVirtio {
			addresses[each.Name] = each.Disk.PciAddress
		}
	}
	for _, each := range devices.Interfaces {
		addresses[each.Name] = each.PciAddress
	}
	return addresses
}

// Main runs a guest in the process that [Programs.Run] has started, and does nothing in any other. It is to be called before anything else.
func Main() {
	root := os.Getenv(rootVariable)
	if root == "" {
		return
	}
	if err := errors.Join(DropPrivileges(root), serve(root)); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// release is the release of KubeVirt whose domain the VirtualMachine of a Domain gets.
var release = domain.Releases[len(domain.Releases)-1]
