package ovf

import (
	"fmt"
	"slices"
	"strconv"
)

// oVirt resolves what oVirt writes in its own way: disks and items that refer to the path of a file instead of its ID, and the disk that boots.
func (d *decoder) oVirt() {
	paths := map[string]string{}
	for i := range d.envelope.Disks {
		disk := &d.envelope.Disks[i]
		at := slices.IndexFunc(d.envelope.Files, func(f File) bool { return f.Href == disk.FileRef })
		if at >= 0 && d.envelope.File(disk.FileRef) == nil {
			disk.FileRef = d.envelope.Files[at].ID
		}
		if file := d.envelope.File(disk.FileRef); file != nil {
			paths[file.Href] = disk.ID
		}
	}
	for i := range d.envelope.Systems {
		hardware := &d.envelope.Systems[i].Hardware
		ordered := len(hardware.BootOrder) > 0
		for j := range hardware.Items {
			item := &hardware.Items[j]
			if item.Type != ResourceDisk {
				continue
			}
			if kind, _ := item.Resource(); kind == "" && len(item.HostResources) == 1 && paths[item.HostResources[0]] != "" {
				item.HostResources[0] = "ovf:/disk/" + paths[item.HostResources[0]]
			}
			if _, disk := item.Resource(); d.boot[disk] && !ordered {
				hardware.BootOrder = append(hardware.BootOrder, item.InstanceID)
			}
		}
	}
}

// check compares references with what they refer to.
func (d *decoder) check(root *Element) error {
	d.oVirt()
	for _, section := range root.Children {
		if section.Local != "DiskSection" {
			continue
		}
		for _, e := range section.Children {
			disk := d.envelope.Disk(e.Attribute("diskId"))
			switch {
			case e.Local != "Disk" || disk == nil:
			case disk.FileRef != "" && d.envelope.File(disk.FileRef) == nil:
				return e.fail("fileRef is %s, which is not the ID of a file", shown(disk.FileRef))
			case disk.ParentRef != "" && d.envelope.Disk(disk.ParentRef) == nil:
				return e.fail("parentRef is %s, which is not the ID of a disk", shown(disk.ParentRef))
			}
		}
	}
	seen := map[string]bool{}
	for i := range d.envelope.Systems {
		system := &d.envelope.Systems[i]
		at := d.systems[i]
		if seen[system.ID] {
			return at.fail("the ID is not unique")
		}
		seen[system.ID] = true
		for _, item := range system.Hardware.Items {
			switch kind, name := item.Resource(); {
			case kind == "disk" && d.envelope.Disk(name) == nil:
				return &DescriptorError{Line: item.Line, Path: at.path(), Message: fmt.Sprintf("the item %s refers to disk %s, which does not exist", shown(item.InstanceID), shown(name))}
			case kind == "file" && d.envelope.File(name) == nil:
				return &DescriptorError{Line: item.Line, Path: at.path(), Message: fmt.Sprintf("the item %s refers to file %s, which does not exist", shown(item.InstanceID), shown(name))}
			}
		}
	}
	return d.capacities()
}

// capacities sets the capacity of disks that refer to a property to that of its default.
func (d *decoder) capacities() error {
	for i := range d.envelope.Disks {
		disk := &d.envelope.Disks[i]
		if disk.CapacityProperty == "" {
			continue
		}
		fail := func(message string, arguments ...any) error {
			return &DescriptorError{Path: "Envelope/DiskSection/Disk[" + disk.ID + "]", Message: fmt.Sprintf(message, arguments...)}
		}
		property := d.envelope.property(disk.CapacityProperty)
		if property == nil {
			return fail("the capacity refers to the property %s, which does not exist", shown(disk.CapacityProperty))
		}
		value, found := property.Default(d.envelope.DefaultConfiguration())
		if !found || value == "" {
			continue
		}
		quantity, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return fail("the capacity refers to the property %s, whose default %s is not an integer", shown(disk.CapacityProperty), shown(value))
		}
		if disk.Capacity, err = Bytes(quantity, disk.CapacityUnits); err != nil {
			return fail("capacity: %v", err)
		}
	}
	return nil
}

// property returns the first property with this full key in any system.
func (e *Envelope) property(key string) *Property {
	for i := range e.Systems {
		for j := range e.Systems[i].Products {
			product := &e.Systems[i].Products[j]
			for k := range product.Properties {
				if product.FullKey(&product.Properties[k]) == key {
					return &product.Properties[k]
				}
			}
		}
	}
	return nil
}
