package template

// suspicions adds warnings that depend on the whole template. Those about user data are added before secretize moves it.
func (c *Compiled) suspicions(vm *node, w *warnings) {
	c.metadataSuspicions(vm.get("metadata"), virtualMachineAt.field("metadata"), w)
	c.defaultSuspicions(vm, w)
}

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

// defaultSuspicions finds defaults that do not fit where ${{NAME}} inserts them. Users may give a better value, so this is
// no error.
func (c *Compiled) defaultSuspicions(n *node, w *warnings) {
	if n.open != nil && n.open.parameter != noParameter && !w.full() {
		p := &c.parameters[n.open.parameter]
		// A hostile template may have many slots of one parameter. Its default must not be read for each of them.
		if p.Value != "" && len(p.Value) <= maxShown && !c.fits(p, n.open) {
			w.add("%s: the default of %s does not fit here: it must be %s", n.open.path, p.Name, n.open.schema.expected())
		}
	}
	for i := range n.items {
		c.defaultSuspicions(&n.items[i], w)
	}
	for i := range n.members {
		c.defaultSuspicions(&n.members[i].value, w)
	}
}

func (c *Compiled) fits(p *parameter, o *open) bool {
	at := &location{name: o.path}
	tree, err := decode(p.Value, MaxDepth, at)
	if err != nil {
		return false
	}
	found := validateNode(&tree, o.schema, at, p.Sensitive)
	return !found.any()
}
