package template

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Mutable returns the names of the parameters whose values may change on a stored VirtualMachine, in alphabetical order.
func (c *Compiled) Mutable() []string {
	var names []string
	for i := range c.parameters {
		if p := &c.parameters[i]; p.Mutable {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (d *declarations) mutable(p *parameter, at *location) {
	switch {
	case !p.Mutable:
	case p.generate:
		d.problems.invalid(at.field("mutable").String(), true, "a mutable parameter takes no generate")
	case p.Sensitive:
		d.problems.invalid(at.field("mutable").String(), true, "a mutable parameter must not be sensitive: its value is stored with the VirtualMachine")
	}
}

// checkMutable rejects mutable parameters that determine what stays the same for the life of a VirtualMachine, what other programs change, and what
// an override is found by.
func (c *Compiled) checkMutable(vm *node, others []node, problems *problems) {
	spec := vm.get("spec")
	for _, fixed := range []struct {
		what string
		mark func(marks)
	}{
		{"the name or another field that identifies the VirtualMachine", func(m marks) { m.identity(vm) }},
		{"spec.runStrategy or spec.running, which starting and stopping change", func(m marks) {
			m.add(m.child(spec, "runStrategy"))
			m.add(m.child(spec, "running"))
		}},
		{"spec.dataVolumeTemplates, whose disks are created once", func(m marks) { m.add(m.child(spec, "dataVolumeTemplates")) }},
		{"the source of a disk", func(m marks) { m.sources(vm) }},
		{"the name of an item of a list", func(m marks) { m.itemNames(vm) }},
		{"another object of the template, which is created once", func(m marks) {
			for i := range others {
				m.add(&others[i])
			}
		}},
	} {
		found := make(marks, len(c.parameters))
		fixed.mark(found)
		for i, is := range found {
			if p := &c.parameters[i]; is && p.Mutable {
				problems.invalid(parametersAt.item(i).field("mutable").String(), true, "a mutable parameter must not be part of %s", fixed.what)
			}
		}
	}
}

// identity adds the parameters outside of the spec, the labels and the annotations.
func (m marks) identity(vm *node) {
	m.keys(vm)
	for i := range vm.members {
		switch member := &vm.members[i]; member.key {
		case "spec":
		case "metadata":
			m.keys(&member.value)
			for j := range member.value.members {
				if below := &member.value.members[j]; below.key != "labels" && below.key != "annotations" {
					m.add(&below.value)
				}
			}
		default:
			m.add(&member.value)
		}
	}
}

// itemNames adds the parameters in the names of items of lists.
func (m marks) itemNames(n *node) {
	for i := range n.items {
		m.add(m.child(&n.items[i], "name"))
		m.itemNames(&n.items[i])
	}
	for i := range n.members {
		m.itemNames(&n.members[i].value)
	}
}

// Value returns the value that a parameter has if a user gives this one, or none: the default then, as in Bind. The cause, at parameters[NAME], is a
// value that its declaration rejects. It generates nothing.
func (c *Compiled) Value(name, value string, given bool) (string, *field.Error) {
	i := c.find(name)
	if i < 0 {
		return "", &field.Error{Type: field.ErrorTypeInvalid, Field: "parameters", BadValue: shown(name), Detail: "the template has no such parameter"}
	}
	return c.parameters[i].chosen(value, given)
}
