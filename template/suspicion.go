package template

// metadataSuspicions finds sensitive parameters in metadata, which is visible to every user who may list VirtualMachines.
func (c *Compiled) metadataSuspicions(n *node, at *location, w *warnings) {
	if n.open != nil {
		for i := range c.parameters {
			p := &c.parameters[i]
			if p.Sensitive && n.open.refersTo(i) {
				w.add("%s: shows the sensitive parameter %s to everyone who can see the VirtualMachine's metadata", at, p.Name)
			}
		}
	}
	for i := range n.members {
		m := &n.members[i]
		if c.sensitive(m.segments) {
			w.add("%s: a key shows a sensitive parameter to everyone who can see the VirtualMachine's metadata", at)
		}
		c.metadataSuspicions(&m.value, at.member(m.key), w)
	}
}

func (o *open) refersTo(parameter int) bool {
	if o.parameter == parameter {
		return true
	}
	for _, s := range o.segments {
		if s.parameter == parameter {
			return true
		}
	}
	return false
}
