package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	virtv1 "kubevirt.io/api/core/v1"
	binding "libvirt.org/go/libvirt"
	"libvirt.org/go/libvirtxml"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/libvirt"
	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/domain"
	"github.com/vmstencil/stencil/defaulting/launcher"
)

// qemuConfiguration makes libvirt do without its daemons.
const qemuConfiguration = `stdio_handler = "file"
security_driver = "none"
`

// serialLog is the file of a guest's serial port, below the folder.
const serialLog = "serial.log"

// serve lays out the VM of the Domain that it reads from the standard input, and writes the complete one to the standard output; or it starts a complete
// one, and writes what its guest sees. One process cannot do both: libvirt reads its configuration once, and a [libvirt.Session] has none.
func serve(root string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var d Domain
	if err := json.NewDecoder(os.Stdin).Decode(&d); err != nil {
		return fmt.Errorf("reading the domain: %w", err)
	}
	var result any
	var err error
	if d.VM != nil {
		result, err = layOut(ctx, root, d.VM)
	} else {
		result, err = start(ctx, root, d)
	}
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// last is a libvirt whose last description is kept.
type last struct {
	launcher.Definer
	described string
}

// Define implements launcher.Definer.
func (l *last) Define(ctx context.Context, xml string) (described string, err error) {
	l.described, err = l.Definer.Define(ctx, xml)
	return l.described, err
}

// layOut has libvirt lay a VirtualMachine out, and adds its identity, processors and memory.
func layOut(ctx context.Context, root string, machine *virtv1.VirtualMachine) (*Domain, error) {
	if machine.Spec.Instancetype != nil {
		return nil, errors.New("spec.instancetype: a VirtualMachine with an instance type cannot be started here")
	}
	session, err := libvirt.Open(root, false)
	if err != nil {
		return nil, err
	}
	prepared := domain.Prepare(machine, domain.Inputs{Release: release})
	recorder := &last{Definer: session}
	_, err = launcher.Layout(ctx, recorder, domain.NewShape(prepared, defaulting.Cluster{}))
	if err := errors.Join(err, session.Close()); err != nil {
		return nil, fmt.Errorf("laying the VirtualMachine out: %w", err)
	}
	description := &libvirtxml.Domain{}
	if err := description.Unmarshal(recorder.described); err != nil {
		return nil, fmt.Errorf("reading libvirt's description: %w", err)
	}
	spec := prepared.Spec.Domain
	description.Memory, description.CurrentMemory = &libvirtxml.DomainMemory{Value: uint(spec.Memory.Guest.Value()), Unit: "b"}, nil
	setProcessors(description, spec.CPU)
	described, err := description.Marshal()
	if err != nil {
		return nil, fmt.Errorf("writing the domain: %w", err)
	}
	return &Domain{Described: described, UUID: string(spec.Firmware.UUID), Serial: spec.Firmware.Serial}, nil
}

func setProcessors(description *libvirtxml.Domain, cpu *virtv1.CPU) {
	sockets, cores, threads := topology(cpu)
	description.VCPU = &libvirtxml.DomainVCPU{Value: uint(sockets * cores * threads)}
	description.CPU = &libvirtxml.DomainCPU{Topology: &libvirtxml.DomainCPUTopology{Sockets: sockets, Cores: cores, Threads: threads}}
}

// topology returns the numbers of sockets, of cores of each and of threads of each: KubeVirt takes one for none.
func topology(cpu *virtv1.CPU) (sockets, cores, threads int) {
	if cpu == nil {
		return 1, 1, 1
	}
	return int(max(1, cpu.Sockets)), int(max(1, cpu.Cores)), int(max(1, cpu.Threads))
}

// start starts a domain, and returns what its guest has printed when it has ended.
func start(ctx context.Context, root string, d Domain) (*Seen, error) {
	paths, err := pathsOf(d.Described)
	if err != nil {
		return nil, err
	}
	description := &libvirtxml.Domain{}
	if err := description.Unmarshal(d.Described); err != nil {
		return nil, fmt.Errorf("reading libvirt's description: %w", err)
	}
	identify(description, d.UUID, d.Serial)
	if err := detach(description, root); err != nil {
		return nil, err
	}
	text, err := description.Marshal()
	if err != nil {
		return nil, fmt.Errorf("writing the domain: %w", err)
	}
	connection, err := open(root)
	if err != nil {
		return nil, err
	}
	running, err := connection.DomainCreateXML(text, 0)
	if err != nil {
		return nil, fmt.Errorf("starting the domain: %w\n%s", err, text)
	}
	// QEMU would outlive this process.
	defer func() { _ = running.Destroy() }()
	printed, err := watch(ctx, root, running)
	if err != nil {
		return nil, fmt.Errorf("%w; the guest has printed\n%s", err, printed)
	}
	seen, err := read(printed)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, printed)
	}
	seen.Paths = paths
	return seen, nil
}

// open opens libvirt with a configuration of its own.
func open(root string) (*binding.Connect, error) {
	for path, content := range map[string]string{filepath.Join(root, serialLog): "", filepath.Join(root, "etc", "qemu.conf"): qemuConfiguration} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			return nil, fmt.Errorf("preparing libvirt: %w", err)
		}
	}
	if err := binding.EventRegisterDefaultImpl(); err != nil {
		return nil, fmt.Errorf("registering libvirt's event loop: %w", err)
	}
	go func() {
		for binding.EventRunDefaultImpl() == nil {
		}
	}()
	connection, err := binding.NewConnect("qemu:///embed?root=" + root)
	if err != nil {
		return nil, fmt.Errorf("opening libvirt: %w", err)
	}
	return connection, nil
}

// watch plugs a disk in when the guest is ready, waits until the guest has ended, and returns what it has printed.
func watch(ctx context.Context, root string, running *binding.Domain) (printed string, err error) {
	plugged := libvirtxml.DomainDisk{Device: "disk", Driver: &libvirtxml.DomainDiskDriver{Name: "qemu", Type: "raw"}, Model: "virtio-non-transitional", Target: &libvirtxml.DomainDiskTarget{Dev: "vdz", Bus: "virtio"}}
	if err := hold(&plugged, filepath.Join(root, "plugged.raw")); err != nil {
		return "", err
	}
	disk, err := plugged.Marshal()
	if err != nil {
		return "", fmt.Errorf("writing the disk: %w", err)
	}
	for done := false; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		// Before the file is read: a domain that is not stored does not exist any more when it has ended.
		active, err := running.IsActive()
		ended := err != nil || !active
		text, err := os.ReadFile(filepath.Join(root, serialLog))
		printed = string(text)
		switch {
		case err != nil:
			return "", fmt.Errorf("reading what the guest prints: %w", err)
		case ended:
			return printed, nil
		case !done && strings.Contains(printed, "\nready"):
			if err := running.AttachDeviceFlags(disk, binding.DOMAIN_DEVICE_MODIFY_LIVE); err != nil {
				return printed, fmt.Errorf("plugging in a disk: %w", err)
			}
			done = true
		}
	}
	return printed, fmt.Errorf("waiting for the guest: %w", ctx.Err())
}

// identify gives a domain a name, and the identity of the firmware.
func identify(description *libvirtxml.Domain, uuid, serial string) {
	description.Name, description.UUID = "guest", uuid
	description.OS.SMBios = &libvirtxml.DomainSMBios{Mode: "sysinfo"}
	description.SysInfo = []libvirtxml.DomainSysInfo{{SMBIOS: &libvirtxml.DomainSysInfoSMBIOS{System: &libvirtxml.DomainSysInfoSystem{
		Entry: []libvirtxml.DomainSysInfoEntry{{Name: "uuid", Value: uuid}, {Name: "serial", Value: serial}},
	}}}}
}

// hold gives a disk a file that holds nothing.
func hold(disk *libvirtxml.DomainDisk, path string) error {
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return fmt.Errorf("making a disk: %w", err)
	}
	if err := os.Truncate(path, 16<<20); err != nil {
		return fmt.Errorf("making a disk: %w", err)
	}
	disk.Source = &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{File: path}}
	return nil
}

// detach replaces what a domain has of its pod, and boots the kernel. The devices and their addresses stay.
func detach(description *libvirtxml.Domain, root string) error {
	description.Type, description.Resource, description.Metadata, description.SecLabel = "qemu", nil, nil, nil
	description.OS.Kernel, description.OS.Initrd = filepath.Join(root, "kernel"), filepath.Join(root, "initramfs")
	description.OS.Cmdline = "console=ttyS0 quiet panic=-1 pci=noats"
	if description.CPU != nil {
		description.CPU = &libvirtxml.DomainCPU{Mode: "maximum", Topology: description.CPU.Topology, Numa: description.CPU.Numa}
	}
	devices := description.Devices
	devices.Emulator = ""
	for i := range devices.Disks {
		disk := &devices.Disks[i]
		disk.Driver = &libvirtxml.DomainDiskDriver{Name: "qemu", Type: "raw"}
		if err := hold(disk, filepath.Join(root, "disk-"+strconv.Itoa(i)+".raw")); err != nil {
			return err
		}
	}
	for i := range devices.Interfaces {
		nic := &devices.Interfaces[i]
		nic.Source = &libvirtxml.DomainInterfaceSource{User: &libvirtxml.DomainInterfaceSourceUser{}}
		nic.Target, nic.Driver, nic.MTU, nic.Script = nil, nil, nil, nil
	}
	for i := range devices.Channels {
		devices.Channels[i].Source = &libvirtxml.DomainChardevSource{Null: &libvirtxml.DomainChardevSourceNull{}}
	}
	port := uint(0)
	devices.Consoles, devices.Graphics = nil, nil
	devices.Serials = []libvirtxml.DomainSerial{{
		Source: &libvirtxml.DomainChardevSource{File: &libvirtxml.DomainChardevSourceFile{Path: filepath.Join(root, serialLog)}},
		Target: &libvirtxml.DomainSerialTarget{Port: &port},
	}}
	return nil
}

// read reads what a guest has printed.
func read(printed string) (*Seen, error) {
	seen := &Seen{Before: map[string]string{}, After: map[string]string{}}
	packages, cores := map[string]bool{}, map[string]bool{}
	devices, done := seen.Before, false
	for line := range strings.Lines(printed) {
		words := strings.Fields(line)
		switch {
		case len(words) == 2 && words[0] == "uuid":
			seen.UUID = words[1]
		case len(words) == 2 && words[0] == "serial":
			seen.Serial = words[1]
		case len(words) == 3 && words[0] == "cpu":
			packages[words[1]], cores[words[1]+" "+words[2]] = true, true
			seen.CPUs++
		case len(words) == 2 && words[0] == "memory":
			size, err := strconv.ParseInt(words[1], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("reading the guest's memory: %w", err)
			}
			seen.Memory += size
		case len(words) == 4 && words[0] == "pci":
			var path []string
			for _, step := range strings.Split(words[1], "/")[4:] {
				path = append(path, step[strings.LastIndex(step, ":")+1:])
			}
			devices[strings.Join(path, "/")] = words[2] + ":" + words[3]
		case len(words) == 1 && words[0] == "later":
			devices = seen.After
		case len(words) == 1 && words[0] == "done":
			done = true
		}
	}
	if !done {
		return nil, errors.New("the guest has not printed all")
	}
	seen.Packages, seen.Cores = len(packages), len(cores)
	return seen, nil
}
