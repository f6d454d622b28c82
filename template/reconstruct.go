package template

import (
	"errors"
	"strconv"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// Reconstruct makes the VirtualMachine of the template with the values that a Match
// of it has found, so that one can see what a VirtualMachine has beyond it. A
// parameter that nothing has shown which was compared has its default, or else
// anything that its type takes: what it stands in is not to be relied upon, but only
// what there is beside it. The values were judged by Match and are not judged again.
func (c *Compiled) Reconstruct(found *Match) (*Rendered, error) {
	if found == nil || found.compiled != c {
		return nil, errors.New("reconstructing a VirtualMachine: the values were found in a comparison with another template")
	}
	b := &Binding{compiled: c, values: make([]string, len(c.parameters))}
	for i := range c.parameters {
		p := &c.parameters[i]
		value, shown := found.values[p.Name]
		if !shown {
			value = p.any()
		}
		b.values[i] = value
	}
	return c.Render(b)
}

// any is a value that the parameter may well have, without chance in it.
func (p *parameter) any() string {
	switch {
	case p.Value != "":
		return p.Value
	case p.optional():
		return ""
	case len(p.Enum) > 0:
		return p.Enum[0]
	}
	switch p.Type {
	case v1beta1.ParameterTypeInt:
		switch {
		case p.Minimum != nil:
			return strconv.FormatInt(*p.Minimum, 10)
		case p.Maximum != nil:
			return strconv.FormatInt(*p.Maximum, 10)
		default:
			return "1"
		}
	case v1beta1.ParameterTypeBool:
		return "true"
	default:
		// It is base64 as well, and fits a name.
		return "anything"
	}
}
