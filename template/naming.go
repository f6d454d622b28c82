package template

import (
	"slices"
	"strings"
)

// Naming reports whether the name of the VirtualMachine sets the parameter of this
// name, and the source of no disk contains the parameter.
func (c *Compiled) Naming(name string) bool {
	i := c.find(name)
	return i >= 0 && c.parameters[i].naming
}

// SelectsSource reports whether the parameter of this name is part of the source of a disk: a user who sets it selects what
// the disk is made of.
func (c *Compiled) SelectsSource(name string) bool {
	i := c.find(name)
	return i >= 0 && c.parameters[i].source
}

// Carries reports whether the template makes a name of the VirtualMachine with the given values. If not, the values of
// parameters that the name would set come from elsewhere.
func (c *Compiled) Carries(name string, values map[string]string) bool {
	_, fits := matchName(parts(c.name, c.explicit(values)), name)
	return fits
}

// Generates reports whether the template generates the parameter of this name, and
// may generate this value of it.
func (c *Compiled) Generates(name, value string) bool {
	i := c.find(name)
	return i >= 0 && c.parameters[i].generator != nil && c.parameters[i].generator.makes(value)
}

// MessageShows reports whether the message of the template contains the parameter of this name.
func (c *Compiled) MessageShows(name string) bool {
	i := c.find(name)
	return i >= 0 && slices.ContainsFunc(c.message, func(s segment) bool { return s.parameter == i })
}

// markParameters marks the parameters for Naming and SelectsSource.
func (c *Compiled) markParameters(vm *node) {
	sources := c.sources(vm)
	for i, is := range sources {
		c.parameters[i].source = is
	}
	for _, s := range c.name {
		if s.parameter != noParameter {
			c.parameters[s.parameter].naming = !sources[s.parameter]
		}
	}
}

// sources marks the parameters that are part of the sources of disks: the sources of DataVolumes, and claims, images and paths
// of volumes.
func (c *Compiled) sources(vm *node) marks {
	s := make(marks, len(c.parameters))
	s.sources(vm)
	return s
}

func (s marks) sources(vm *node) {
	spec := s.child(vm, "spec")
	var own []*node
	for _, dataVolume := range s.items(s.child(spec, "dataVolumeTemplates")) {
		own = append(own, s.child(s.child(dataVolume, "metadata"), "name"))
		s.dataVolume(s.child(dataVolume, "spec"))
	}
	guest := s.child(s.child(spec, "template"), "spec")
	for _, volume := range s.items(s.child(guest, "volumes")) {
		s.volume(volume, own)
	}
	s.add(s.child(s.child(s.child(guest, "domain"), "firmware"), "kernelBoot"))
}

func (s marks) dataVolume(spec *node) {
	s.add(s.child(spec, "source"))
	s.add(s.child(spec, "sourceRef"))
	for _, kind := range []string{"pvc", "storage"} {
		claim := s.child(spec, kind)
		for _, key := range []string{"dataSource", "dataSourceRef", "volumeName"} {
			s.add(s.child(claim, key))
		}
	}
}

// volume adds the parameters in the source of a volume. It excludes the names of the VirtualMachine's own DataVolumes, which
// are usually named like the VirtualMachine and select no source, and volumes that only configure the guest.
func (s marks) volume(volume *node, own []*node) {
	if volume == nil {
		return
	}
	s.keys(volume)
	for i := range volume.members {
		m := &volume.members[i]
		switch {
		case m.segments != nil:
		case m.key == "name", strings.HasPrefix(m.key, "cloudInit"),
			slices.Contains([]string{"configMap", "downwardAPI", "secret", "serviceAccount", "sysprep"}, m.key):
		case m.key == "dataVolume":
			name := s.child(&m.value, "name")
			if !slices.ContainsFunc(own, func(other *node) bool { return name != nil && other != nil && sameText(name, other) }) {
				s.add(name)
			}
		default:
			s.add(&m.value)
		}
	}
}
