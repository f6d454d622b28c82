package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	virtv1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirt"
	"libvirt.org/go/libvirtxml"
)

// run starts the VM, and returns what its guest has printed.
func (g *guests) run(t *testing.T, stored *virtv1.VirtualMachine) guest {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), guestLimit)
	defer cancel()
	instance, err := g.kubeVirt.instance(stored, sizes{})
	if err != nil {
		t.Fatal(err)
	}
	converted, err := g.kubeVirt.convert(instance)
	if err != nil {
		t.Fatal(err)
	}
	information := &libvirtxml.DomainSysInfo{SMBIOS: &libvirtxml.DomainSysInfoSMBIOS{System: &libvirtxml.DomainSysInfoSystem{}}}
	for _, entry := range converted.SysInfo.System {
		information.SMBIOS.System.Entry = append(information.SMBIOS.System.Entry, libvirtxml.DomainSysInfoEntry{Name: entry.Name, Value: entry.Value})
	}
	removeWhatMovesNothing(converted)
	described, err := g.release.start(ctx, g.definer, instance, converted)
	if err != nil {
		t.Fatal(err)
	}
	var domain libvirtxml.Domain
	if err := domain.Unmarshal(described); err != nil {
		t.Fatal(err)
	}
	paths, err := pathsOf(described)
	if err != nil {
		t.Fatal(err)
	}

	root := stateFolder(t)
	for name, content := range map[string][]byte{"kernel": g.kernel, "initramfs": g.initramfs, "serial.log": nil, "etc/qemu.conf": []byte(qemuConfiguration)} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	domain.Name, domain.UUID, domain.SysInfo = "guest", string(instance.Spec.Domain.Firmware.UUID), []libvirtxml.DomainSysInfo{*information}
	domain.OS.SMBios = &libvirtxml.DomainSMBios{Mode: "sysinfo"}
	if err := detach(&domain, root); err != nil {
		t.Fatal(err)
	}
	started, err := domain.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	plugged := libvirtxml.DomainDisk{Device: "disk", Driver: &libvirtxml.DomainDiskDriver{Name: "qemu", Type: "raw"}, Model: "virtio-non-transitional", Target: &libvirtxml.DomainDiskTarget{Dev: "vdz", Bus: "virtio"}}
	if err := hold(&plugged, filepath.Join(root, "plugged.raw")); err != nil {
		t.Fatal(err)
	}
	attached, err := plugged.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	order, err := json.Marshal(guestOrder{Domain: started, Disk: attached, Serial: filepath.Join(root, "serial.log")})
	if err != nil {
		t.Fatal(err)
	}
	if err := ownedByNobody(root); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(ctx, self)
	process.Env = append(environment(root), guestVariable+"=1")
	process.Stdin = bytes.NewReader(order)
	process.Cancel = func() error { return process.Process.Signal(syscall.SIGTERM) }
	process.WaitDelay = 10 * time.Second
	output, err := process.CombinedOutput()
	printed, readErr := os.ReadFile(filepath.Join(root, "serial.log"))
	if err := errors.Join(err, readErr); err != nil {
		t.Fatalf("running the guest: %v\n%s\nit printed\n%s\nits domain\n%s", err, output, printed, started)
	}
	seen, err := readGuest(string(printed))
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	seen.paths = paths
	for address, path := range paths {
		if _, found := seen.before[path]; !found {
			t.Errorf("the guest has nothing at %s, which is %s in the domain", path, address)
		}
	}
	known := slices.Collect(maps.Values(paths))
	for path, device := range seen.before {
		if !slices.Contains(known, path) && !slices.Contains(strings.Fields(chipset), path) {
			t.Errorf("the guest has %s at %s, where the domain has nothing", device, path)
		}
	}
	return seen
}

// qemuConfiguration makes libvirt do without its daemons.
const qemuConfiguration = `stdio_handler = "file"
security_driver = "none"
`

func ownedByNobody(root string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, nobody, nobody))
	})
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
func detach(domain *libvirtxml.Domain, root string) error {
	domain.Type, domain.Resource, domain.Metadata, domain.SecLabel = "qemu", nil, nil, nil
	domain.OS.Kernel, domain.OS.Initrd = filepath.Join(root, "kernel"), filepath.Join(root, "initramfs")
	domain.OS.Cmdline = "console=ttyS0 quiet panic=-1 pci=noats"
	if domain.CPU != nil {
		domain.CPU = &libvirtxml.DomainCPU{Mode: "maximum", Topology: domain.CPU.Topology, Numa: domain.CPU.Numa}
	}
	devices := domain.Devices
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
		Source: &libvirtxml.DomainChardevSource{File: &libvirtxml.DomainChardevSourceFile{Path: filepath.Join(root, "serial.log")}},
		Target: &libvirtxml.DomainSerialTarget{Port: &port},
	}}
	return nil
}

// pathsOf returns the path of every PCI device of a domain from the root bus, by its address.
func pathsOf(described string) (map[string]string, error) {
	found, err := read(described, nil)
	if err != nil {
		return nil, err
	}
	// The bridge to each bus.
	bridges := map[uint64]string{}
	for address, device := range found {
		kind, name, _ := strings.Cut(device, " ")
		parts := strings.Split(name, "/")
		if kind != "controller" || parts[0] != "pci" {
			continue
		}
		bus, err := strconv.ParseUint(parts[2], 10, 8)
		if err != nil {
			return nil, fmt.Errorf("reading the index of a controller: %w", err)
		}
		bridges[bus] = address
	}
	var path func(address string) (string, error)
	path = func(address string) (string, error) {
		parts := strings.Split(address, ":")
		bus, err := strconv.ParseUint(parts[1], 16, 8)
		if err != nil {
			return "", fmt.Errorf("reading an address: %w", err)
		}
		if bus == 0 {
			return parts[2], nil
		}
		bridge, err := path(bridges[bus])
		return bridge + "/" + parts[2], err
	}
	paths := map[string]string{}
	for address := range found {
		if paths[address], err = path(address); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// readGuest reads what a guest has printed.
func readGuest(printed string) (guest, error) {
	seen := guest{before: map[string]string{}, after: map[string]string{}}
	packages, cores := map[string]bool{}, map[string]bool{}
	devices, done := seen.before, false
	for line := range strings.Lines(printed) {
		words := strings.Fields(line)
		switch {
		case len(words) == 2 && words[0] == "uuid":
			seen.uuid = words[1]
		case len(words) == 2 && words[0] == "serial":
			seen.serial = words[1]
		case len(words) == 3 && words[0] == "cpu":
			packages[words[1]], cores[words[1]+" "+words[2]] = true, true
			seen.cpus++
		case len(words) == 2 && words[0] == "memory":
			size, err := strconv.ParseInt(words[1], 10, 64)
			if err != nil {
				return guest{}, fmt.Errorf("reading the guest's memory: %w", err)
			}
			seen.memory += size
		case len(words) == 4 && words[0] == "pci":
			var path []string
			for _, step := range strings.Split(words[1], "/")[4:] {
				path = append(path, step[strings.LastIndex(step, ":")+1:])
			}
			devices[strings.Join(path, "/")] = words[2] + ":" + words[3]
		case len(words) == 1 && words[0] == "later":
			devices = seen.after
		case len(words) == 1 && words[0] == "done":
			done = true
		}
	}
	if !done {
		return guest{}, errors.New("the guest has not printed all")
	}
	seen.packages, seen.cores = len(packages), len(cores)
	return seen, nil
}

// guestOrder is what the process that runs a guest reads.
type guestOrder struct {
	// Domain is the domain to start, and Disk the disk to add when it is ready.
	Domain, Disk string
	// Serial is the file of its serial port.
	Serial string
}

// runGuest runs a guest until it has ended.
func runGuest(root string) error {
	var order guestOrder
	if err := json.NewDecoder(os.Stdin).Decode(&order); err != nil {
		return fmt.Errorf("reading the domain: %w", err)
	}
	if err := libvirt.EventRegisterDefaultImpl(); err != nil {
		return fmt.Errorf("registering libvirt's event loop: %w", err)
	}
	go func() {
		for libvirt.EventRunDefaultImpl() == nil {
		}
	}()
	connection, err := libvirt.NewConnect("qemu:///embed?root=" + root)
	if err != nil {
		return fmt.Errorf("opening libvirt: %w", err)
	}
	running, err := connection.DomainCreateXML(order.Domain, 0)
	if err != nil {
		return fmt.Errorf("starting the domain: %w", err)
	}
	// QEMU would outlive this process.
	defer func() { _ = running.Destroy() }()
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for plugged := false; ended.Err() == nil; time.Sleep(200 * time.Millisecond) {
		printed, err := os.ReadFile(order.Serial)
		if err != nil {
			return fmt.Errorf("reading what the guest prints: %w", err)
		}
		if !plugged && strings.Contains(string(printed), "\nready") {
			if err := running.AttachDeviceFlags(order.Disk, libvirt.DOMAIN_DEVICE_MODIFY_LIVE); err != nil {
				return fmt.Errorf("adding a disk: %w", err)
			}
			plugged = true
		}
		if active, err := running.IsActive(); err != nil || !active {
			// A domain that is not stored does not exist any more.
			return nil
		}
	}
	return ended.Err()
}
