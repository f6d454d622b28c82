package template

import "slices"

// Places are where a parameter occurs.
type Places struct {
	// VM are the paths of the fields of the VirtualMachine that depend on it, of which each may change with everything below it. A path ends at a
	// list, and at an object with keys that have parameters.
	VM [][]string
	// Objects reports whether the other objects of the template depend on it.
	Objects bool
}

// Places returns where a parameter occurs. All values of the parameter make VirtualMachines that are equal elsewhere. It is empty if the template has no
// such parameter.
func (c *Compiled) Places(name string) Places {
	found := c.find(name)
	if found < 0 {
		return Places{}
	}
	searched := make(marks, len(c.parameters))
	searched[found] = true
	if c.objects != nil && c.objects.own != nil {
		// The names of the Secrets of secretize contain the name of the VirtualMachine.
		for _, s := range c.objects.own {
			if s.parameter == found {
				searched[len(c.parameters)-1] = true
			}
		}
	}
	s := &placeSearch{searched: searched}
	s.at(c.outline.of(&c.program), nil)
	places := Places{VM: s.found}
	if c.objects != nil {
		in := make(marks, len(c.parameters))
		others := new(outline).of(&c.objects.program)
		in.add(others)
		for i, is := range in {
			places.Objects = places.Objects || is && searched[i]
		}
	}
	return places
}

type placeSearch struct {
	searched marks
	found    [][]string
}

// at searches in a value, whose path is path.
func (s *placeSearch) at(n *node, path []string) {
	open := n.kind == kindList || n.open != nil
	for i := range n.members {
		open = open || n.members[i].segments != nil
	}
	if !open {
		for i := range n.members {
			s.at(&n.members[i].value, append(slices.Clip(path), n.members[i].key))
		}
		return
	}
	in := make(marks, len(s.searched))
	in.add(n)
	for i, is := range in {
		if is && s.searched[i] {
			s.found = append(s.found, path)
			return
		}
	}
}
