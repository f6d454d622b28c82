package conversion

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vmstencil/stencil/ovf"
)

// storage converts disks and CD drives.
func (s *system) storage(name string) error {
	var disks []*ovf.Item
	for i := range s.items {
		if isDisk(&s.items[i]) {
			disks = append(disks, &s.items[i])
		}
	}
	slices.SortStableFunc(disks, s.bootOrder)
	for i, item := range disks {
		if err := s.disk(name, item, i); err != nil {
			return err
		}
	}
	for i := range s.items {
		if item := &s.items[i]; item.Type == ovf.ResourceCD || item.Type == ovf.ResourceDVD {
			s.cd(name, item)
		}
	}
	return nil
}

// isDisk reports whether an item is a disk. XenCenter writes storage extents.
func isDisk(item *ovf.Item) bool {
	switch item.Type {
	case ovf.ResourceDisk, ovf.ResourceLogicalDisk:
		return true
	case ovf.ResourceStorageExtent, ovf.ResourceStorageVolume:
		kind, _ := item.Resource()
		return kind == "disk"
	}
	return false
}

// bootOrder compares disks: those of the boot order first, then by their controllers, then by their address.
func (s *system) bootOrder(a, b *ovf.Item) int {
	rank := func(item *ovf.Item) int {
		if i := slices.Index(s.source.Hardware.BootOrder, item.InstanceID); i >= 0 {
			return i
		}
		return len(s.source.Hardware.BootOrder)
	}
	number := func(address string) int {
		n, err := strconv.Atoi(address)
		if err != nil {
			return 0
		}
		return n
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), slices.Compare(s.controller(a), s.controller(b)), cmp.Compare(number(a.AddressOnParent), number(b.AddressOnParent)))
}

// controller returns by what disks of several controllers are ordered: the position of the first controller of the same kind in the descriptor, the
// number of the bus, and the position of the controller itself. VMware writes IDE 1 before IDE 0, and the guest boots from IDE 0.
func (s *system) controller(disk *ovf.Item) []int {
	at := slices.IndexFunc(s.items, func(item ovf.Item) bool { return item.InstanceID == disk.Parent })
	if at < 0 {
		return []int{at}
	}
	controller := &s.items[at]
	first := slices.IndexFunc(s.items, func(item ovf.Item) bool {
		return item.Type == controller.Type && (item.Type != ovf.ResourceOtherStorage || item.SubType == controller.SubType)
	})
	bus, err := strconv.Atoi(controller.Address)
	if err != nil {
		bus = 0
	}
	return []int{first, bus, at}
}

// volumeName returns a new name for a volume.
func (s *system) volumeName(text string) string {
	name := unique(text, "-", s.volumeNames)
	s.volumeNames = append(s.volumeNames, name)
	return name
}

func (s *system) disk(name string, item *ovf.Item, number int) error {
	kind, id := item.Resource()
	disk := s.envelope.Disk(id)
	if kind != "disk" || disk == nil {
		s.note(ActionWarning, title(item), "it refers to no disk of the package and is dropped")
		return nil
	}
	if disk.ParentRef != "" {
		return fmt.Errorf("the disk %s is a difference to %s; export it as a whole", disk.ID, disk.ParentRef)
	}
	if disk.Capacity > 1<<62 {
		return fmt.Errorf("the disk %s has %d bytes; want at most 2^62", disk.ID, disk.Capacity)
	}
	volume := s.volumeName("disk" + strconv.Itoa(number))
	bus := s.bus(item)
	device := map[string]any{"name": volume, "disk": map[string]any{"bus": bus}}
	if number == 0 {
		device["bootOrder"] = 1
	}
	s.disks = append(s.disks, device)
	file := s.envelope.File(disk.FileRef)
	size := quantity((disk.Capacity + 1<<20 - 1) &^ (1<<20 - 1))
	if file == nil {
		if parameter := s.capacity(disk); parameter != "" {
			size = parameter
		}
		if size == "0" {
			return fmt.Errorf("the disk %s is empty and has no capacity", disk.ID)
		}
		s.attach(volume, map[string]any{"blank": map[string]any{}}, size)
		s.note(ActionKept, title(item), "an empty disk of %s at %s", size, bus)
		return nil
	}
	s.clone(name, volume, size, Disk{File: file.Href, Format: disk.Format, Capacity: disk.Capacity})
	s.note(ActionKept, title(item), "%s, %s, at %s", file.Href, size, bus)
	return nil
}

// clone adds a disk that is filled from a file, and copied for each VirtualMachine.
func (s *system) clone(name, volume, size string, disk Disk) {
	disk.Volume, disk.Claim = volume, name+"-"+volume
	s.plan.Disks = append(s.plan.Disks, disk)
	s.attach(volume, map[string]any{"pvc": map[string]any{"namespace": s.options.Namespace, "name": disk.Claim}}, size)
}

// attach adds a volume, and the DataVolume that it is made from.
func (s *system) attach(volume string, source map[string]any, size string) {
	storage := map[string]any{}
	if size != "" {
		storage["resources"] = map[string]any{"requests": map[string]any{"storage": size}}
	}
	if s.options.StorageClass != "" {
		storage["storageClassName"] = s.options.StorageClass
	}
	dataVolume := volume + "-${" + ParameterName + "}"
	s.dataVolumes = append(s.dataVolumes, map[string]any{
		"metadata": map[string]any{"name": dataVolume}, "spec": map[string]any{"source": source, "storage": storage},
	})
	s.volumes = append(s.volumes, map[string]any{"name": volume, "dataVolume": map[string]any{"name": dataVolume}})
}

// capacity returns the size of an empty disk that a parameter specifies, such as ${SIZE}Gi.
func (s *system) capacity(disk *ovf.Disk) string {
	parameter, found := s.byProperty[disk.CapacityProperty]
	unit, err := ovf.Bytes(1, disk.CapacityUnits)
	if !found || err != nil {
		return ""
	}
	suffix, found := map[int64]string{1: "", 1 << 10: "Ki", 1 << 20: "Mi", 1 << 30: "Gi", 1 << 40: "Ti"}[unit]
	if !found {
		return ""
	}
	for i := range s.parameters {
		p := &s.parameters[i]
		if p.Name != parameter || p.Type != "int" {
			continue
		}
		if one := int64(1); p.Minimum == nil || *p.Minimum < one {
			p.Minimum = &one
		}
		p.Required = true
		return "${" + parameter + "}" + suffix
	}
	return ""
}

// bus chooses the bus of a disk.
func (s *system) bus(item *ovf.Item) string {
	if s.options.DiskBus != "" {
		return s.options.DiskBus
	}
	i := slices.IndexFunc(s.items, func(other ovf.Item) bool { return other.InstanceID == item.Parent })
	if i < 0 {
		// oVirt has no controllers of disks.
		if _, id := item.Resource(); s.envelope.Disk(id) != nil {
			bus := map[string]string{"virtio_scsi": BusSCSI, "virtio": BusVirtio, "sata": BusSATA}[strings.ToLower(s.envelope.Disk(id).Interface)]
			if bus != "" {
				return bus
			}
		}
		s.note(ActionChanged, title(item), "no controller is declared; the disk is at %s", BusSATA)
		return BusSATA
	}
	controller := &s.items[i]
	subType := strings.ToLower(controller.SubType)
	switch {
	case strings.Contains(subType, "virtio"):
		// virtio-blk is a device without a controller; what is at a controller is virtio-scsi.
		return BusSCSI
	case controller.Type == ovf.ResourceOtherStorage && (strings.Contains(subType, "ahci") || strings.Contains(subType, "sata")):
		return BusSATA
	case controller.Type == ovf.ResourceIDEController:
		s.note(ActionChanged, title(controller), "KubeVirt has no IDE; the disk %s is at %s", item.Name, BusSATA)
	default:
		s.note(ActionChanged, title(controller), "KubeVirt has no controller %s, and its bus scsi needs virtio drivers in the guest; the disk %s is at %s, with which guests boot that have none. Choose the bus virtio if the guest has the drivers", orNone(controller.SubType), item.Name, BusSATA)
	}
	return BusSATA
}

func (s *system) cd(name string, item *ovf.Item) {
	kind, id := item.Resource()
	file := s.envelope.File(id)
	disk := Disk{CDROM: true, Format: ovf.FormatISO, Capacity: -1}
	if kind == "disk" {
		if of := s.envelope.Disk(id); of != nil {
			file = s.envelope.File(of.FileRef)
			disk.Format, disk.Capacity = of.Format, of.Capacity
		}
	}
	if file == nil {
		s.note(ActionDropped, title(item), "the drive is empty")
		return
	}
	disk.File = file.Href
	if disk.Capacity < 0 && file.Compression == "" {
		disk.Capacity = file.Size
	}
	size := ""
	if disk.Capacity >= 0 && disk.Capacity <= 1<<62 {
		size = quantity((max(disk.Capacity, 1) + 1<<20 - 1) &^ (1<<20 - 1))
	}
	volume := s.volumeName("cdrom")
	s.disks = append(s.disks, map[string]any{"name": volume, "cdrom": map[string]any{"bus": BusSATA}})
	s.clone(name, volume, size, disk)
	s.note(ActionKept, title(item), "%s, a CD at %s", file.Href, BusSATA)
}
