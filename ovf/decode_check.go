package ovf

import (
	"fmt"
	"strconv"
)

// check compares references with what they refer to.
func (d *decoder) check(root *Element) error {
	for _, section := range root.Children {
		if section.Local != "DiskSection" {
			continue
		}
		for _, e := range section.Children {
			if file := e.Attribute("fileRef"); e.Local == "Disk" && file != "" && d.envelope.File(file) == nil {
				return e.fail("fileRef is %s, which is not the ID of a file", shown(file))
			}
			if parent := e.Attribute("parentRef"); e.Local == "Disk" && parent != "" && d.envelope.Disk(parent) == nil {
				return e.fail("parentRef is %s, which is not the ID of a disk", shown(parent))
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
