package template

import (
	"errors"
	"strconv"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// Reconstruct makes the VirtualMachine of the template with the values that a Match of it has found, to determine what a
// VirtualMachine has in addition. A parameter that no compared place shows has its default, or else an arbitrary value of
// its type: only the additional fields are reliable, not the places with that parameter. Match has validated the values, and
// they are not validated again.
func (c *Compiled) Reconstruct(found *Match) (*Rendered, error) {
	if found == nil || found.compiled != c {
		return nil, errors.New("reconstructing a VirtualMachine: the values were found in a comparison with another template")
	}
	parameters := c.declared()
	b := &Binding{compiled: c, values: make([]string, len(parameters))}
	for i := range parameters {
		p := &parameters[i]
		value, shown := found.values[p.Name]
		if !shown {
			value = p.any()
		}
		b.values[i] = value
	}
	return c.render(b, found.name, nil)
}

// any returns a valid value of the parameter without randomness.
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
		// It is valid base64, and fits a name.
		return "anything"
	}
}
