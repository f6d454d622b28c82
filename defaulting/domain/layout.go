package domain

import (
	"cmp"
	"slices"

	"libvirt.org/go/libvirtxml"
)

// Layout is the result of defining a shape with libvirt.
type Layout struct {
	// MachineType is the version that the machine type of the shape resolves to.
	MachineType string `json:"machine"`
	// Disks and NICs are the addresses of disks and interfaces, SR-IOV functions included, by
	// their index in the VirtualMachine.
	Disks map[int]Address `json:"disks,omitempty"`
	NICs  map[int]Address `json:"nics,omitempty"`
	// Buses are the models of the PCI controllers by the bus that they provide.
	Buses map[uint]string `json:"buses,omitempty"`
	// Devices are all devices with a PCI address, sorted by address.
	Devices []Placed `json:"devices,omitempty"`
}

// Placed is a device with its address.
type Placed struct {
	// List and Index identify the device in the VirtualMachine. List is empty for a device that
	// the VirtualMachine does not request.
	List  string `json:"list,omitempty"`
	Index int    `json:"i,omitempty"`
	Kind  string `json:"kind"`
	// Model and Number are set for controllers only.
	Model   string  `json:"model,omitempty"`
	Number  *uint   `json:"number,omitempty"`
	Address Address `json:"at"`
}

// ListDisks is the list of disks, in addition to ListInterfaces and the lists of host devices.
const ListDisks = "disks"

// Read extracts the layout from a domain described by libvirt.
func (s Shape) Read(d *libvirtxml.Domain) *Layout {
	l := &Layout{Disks: map[int]Address{}, NICs: map[int]Address{}, Buses: map[uint]string{}}
	if d.OS != nil && d.OS.Type != nil {
		l.MachineType = d.OS.Type.Machine
	}
	asked := s.aliases()
	add := func(kind string, alias *libvirtxml.DomainAlias, address *libvirtxml.DomainAddress, of Placed) {
		at, ok := readAddress(address)
		if !ok {
			return
		}
		of.Kind, of.Address = kind, at
		if alias != nil {
			if origin, ok := asked[alias.Name]; ok {
				of.List, of.Index = origin.List, origin.Index
			}
		}
		switch of.List {
		case ListDisks:
			l.Disks[of.Index] = at
		case ListInterfaces:
			l.NICs[of.Index] = at
		}
		l.Devices = append(l.Devices, of)
	}
	readDevices(d.Devices, l, add)
	slices.SortStableFunc(l.Devices, func(a, b Placed) int { return compareAddresses(a.Address, b.Address) })
	return l
}

func readDevices(devices *libvirtxml.DomainDeviceList, l *Layout, add func(string, *libvirtxml.DomainAlias, *libvirtxml.DomainAddress, Placed)) {
	for i := range devices.Controllers {
		controller := &devices.Controllers[i]
		if controller.Type == "pci" && controller.Index != nil {
			l.Buses[*controller.Index] = controller.Model
		}
		add("controller", nil, controller.Address, Placed{Model: controller.Type + " " + controller.Model, Number: controller.Index})
	}
	for i := range devices.Disks {
		add("disk", devices.Disks[i].Alias, devices.Disks[i].Address, Placed{})
	}
	for i := range devices.Interfaces {
		add("interface", devices.Interfaces[i].Alias, devices.Interfaces[i].Address, Placed{})
	}
	for i := range devices.Hostdevs {
		add("hostdev", devices.Hostdevs[i].Alias, devices.Hostdevs[i].Address, Placed{})
	}
	for i := range devices.Inputs {
		add("input", nil, devices.Inputs[i].Address, Placed{})
	}
	for i := range devices.Watchdogs {
		add("watchdog", nil, devices.Watchdogs[i].Address, Placed{})
	}
	for i := range devices.RNGs {
		add("rng", nil, devices.RNGs[i].Address, Placed{})
	}
	for i := range devices.Videos {
		add("video", nil, devices.Videos[i].Address, Placed{})
	}
	for i := range devices.Sounds {
		add("sound", nil, devices.Sounds[i].Address, Placed{})
	}
	for i := range devices.Filesystems {
		add("filesystem", nil, devices.Filesystems[i].Address, Placed{})
	}
	for i := range devices.Panics {
		add("panic", nil, devices.Panics[i].Address, Placed{})
	}
	if devices.MemBalloon != nil {
		add("memballoon", nil, devices.MemBalloon.Address, Placed{})
	}
	if devices.VSock != nil {
		add("vsock", nil, devices.VSock.Address, Placed{})
	}
}

// aliases maps each alias to the device of the VirtualMachine that has it.
func (s Shape) aliases() map[string]Placed {
	asked := map[string]Placed{}
	for _, disk := range s.Disks {
		asked[diskAlias(disk.Index)] = Placed{List: ListDisks, Index: disk.Index}
	}
	for _, nic := range s.NICs {
		asked[nicAlias(nic.Index)] = Placed{List: ListInterfaces, Index: nic.Index}
	}
	for _, device := range s.HostDevices {
		asked[hostDeviceAlias(device)] = Placed{List: device.List, Index: device.Index}
	}
	return asked
}

func readAddress(address *libvirtxml.DomainAddress) (Address, bool) {
	if address == nil || address.PCI == nil {
		return Address{}, false
	}
	value := func(part *uint) uint {
		if part == nil {
			return 0
		}
		return *part
	}
	pci := address.PCI
	return Address{value(pci.Domain), value(pci.Bus), value(pci.Slot), value(pci.Function)}, true
}

func compareAddresses(a, b Address) int {
	return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Bus, b.Bus), cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Function, b.Function))
}

// Writable reports whether an address may be written into a VirtualMachine. An address is
// stable across starts only behind a root port or on the root bus.
func (l *Layout) Writable(address Address) bool {
	model := l.Buses[address.Bus]
	return model == "pcie-root-port" || model == "pcie-root"
}

// Bridged reports whether the layout has a bridge to conventional PCI.
func (l *Layout) Bridged() bool {
	for _, model := range l.Buses {
		if model != "pcie-root-port" && model != "pcie-root" {
			return true
		}
	}
	return false
}

// Reserved returns the addresses that are requested by devices that the VM does not have when it is started: disks that are
// plugged in later, and absent interfaces.
func Reserved(m *PreparedVM, s Shape) map[Address]bool {
	present := s.aliases()
	reserved := map[Address]bool{}
	reserve := func(alias, text string) {
		if _, ok := present[alias]; !ok {
			if address := addressOf(text); address != nil {
				reserved[*address] = true
			}
		}
	}
	for i := range m.Spec.Domain.Devices.Disks {
		if disk := m.Spec.Domain.Devices.Disks[i].Disk; disk != nil {
			reserve(diskAlias(i), disk.PciAddress)
		}
	}
	for i := range m.Spec.Domain.Devices.Interfaces {
		reserve(nicAlias(i), m.Spec.Domain.Devices.Interfaces[i].PciAddress)
	}
	return reserved
}

// Place returns the shape with the writable addresses of a layout, which is the shape of the
// next start.
func (s Shape) Place(l *Layout) Shape {
	s.Disks, s.NICs, s.HostDevices = slices.Clone(s.Disks), slices.Clone(s.NICs), slices.Clone(s.HostDevices)
	place := func(address **Address, at Address, ok bool) {
		if *address == nil && ok && l.Writable(at) {
			*address = &at
		}
	}
	for i := range s.Disks {
		if disk := &s.Disks[i]; disk.Writable() {
			at, ok := l.Disks[disk.Index]
			place(&disk.Address, at, ok)
		}
	}
	for i := range s.NICs {
		at, ok := l.NICs[s.NICs[i].Index]
		place(&s.NICs[i].Address, at, ok)
	}
	for i := range s.HostDevices {
		if device := &s.HostDevices[i]; device.List == ListInterfaces {
			at, ok := l.NICs[device.Index]
			place(&device.Address, at, ok)
		}
	}
	return s
}

// Writable reports whether the API has a field for the address of the disk.
func (d DiskShape) Writable() bool { return d.Kind == "disk" && d.Bus == "virtio" }
