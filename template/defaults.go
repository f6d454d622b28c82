package template

import (
	"errors"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// attempts is the number of times for which values are generated to check a template: of an expression such as [a-z0-9]{1}, only some values fit.
const attempts = 3

// CheckDefaults renders the template without values of a user, and returns why that makes no VirtualMachine. A required parameter without a
// value has one that its declaration permits; where the declaration permits any text, what depends on it is not checked.
//
// The causes are in invalid if a user gives no value at all: each of them is about values that the template has itself. They are in doubtful if
// the template has a required parameter without a value, or if they are about an optional parameter that is empty: a user may give a value with
// which the VirtualMachine is valid.
//
// Generated values are the same each time, and are used for nothing else. The first call renders, at a cost that is limited as for Render; later
// calls return the same lists, which callers do not change.
func (c *Compiled) CheckDefaults() (invalid, doubtful field.ErrorList) { return c.defaults() }

func (c *Compiled) checkDefaults() (invalid, doubtful field.ErrorList) {
	parameters := c.declared()
	values, unknown := make([]string, len(parameters)), make([]bool, len(parameters))
	complete := true
	for i := range parameters {
		p := &parameters[i]
		switch {
		case p.Value != "":
			values[i] = p.Value
		case p.generator != nil, p.optional():
		default:
			complete = false
			values[i] = p.example()
			unknown[i] = values[i] == ""
		}
	}
	doubtful = c.try(values, unknown)
	if len(doubtful) == 0 || !complete {
		return nil, doubtful
	}
	for i := range parameters {
		unknown[i] = values[i] == "" && parameters[i].generator == nil
	}
	if invalid = c.try(values, unknown); len(invalid) == 0 {
		return nil, doubtful
	}
	for _, cause := range invalid {
		cause.Detail += "; these are the template's own values: correct them, or require a value of the user"
	}
	return invalid, nil
}

// Outline renders the VirtualMachine with given values, which are not validated. Every other parameter that is required or generated and has no
// default is left as ${NAME} wherever it is inserted, and what depends on it is not checked.
func (c *Compiled) Outline(given map[string]string) (*Rendered, error) {
	parameters := c.declared()
	values, unknown := make([]string, len(parameters)), make([]bool, len(parameters))
	for i := range parameters {
		p := &parameters[i]
		values[i] = given[p.Name]
		if values[i] == "" {
			values[i] = p.Value
		}
		unknown[i] = values[i] == "" && !p.optional()
	}
	return c.outlined(values, unknown)
}

// outlined renders with placeholders for the unknown parameters.
func (c *Compiled) outlined(values []string, unknown []bool) (*Rendered, error) {
	values = slices.Clone(values)
	for i := range values {
		if unknown[i] {
			values[i] = "${" + c.parameters[i].Name + "}"
		}
	}
	return c.render(&Binding{compiled: c, values: values}, "", c.objects, unknown...)
}

// try returns the causes of the first attempt to render if no attempt succeeds.
func (c *Compiled) try(values []string, unknown []bool) field.ErrorList {
	var first *InvalidError
	for attempt := range byte(attempts) {
		generated := slices.Clone(values)
		var err error
		if c.drawn > 0 {
			err = c.generate(generated, rand.NewChaCha8([32]byte{attempt}))
		}
		if err == nil {
			_, err = c.outlined(generated, unknown)
		}
		var found *InvalidError
		if !errors.As(err, &found) {
			return nil
		}
		if first == nil {
			first = found
		}
		if c.drawn == 0 {
			break
		}
	}
	return first.Causes
}

// example returns a value that the declaration of the parameter permits, and "" if it permits any text.
func (p *parameter) example() string {
	value := ""
	switch {
	case len(p.Enum) > 0, p.Type != "" && p.Type != v1beta1.ParameterTypeString && p.Pattern == "":
		value = p.any()
	case p.Pattern != "":
		// The pattern was parsed before.
		if parsed, err := syntax.Parse(p.Pattern, syntax.Perl); err == nil {
			value = matching(parsed)
		}
	}
	if value == "" || p.check(value, "") != nil {
		return ""
	}
	return value
}

// matching returns a short text that an expression matches. If the expression has conditions such as \b, it may return a text that does not match.
func matching(r *syntax.Regexp) string {
	switch r.Op {
	case syntax.OpLiteral:
		return string(r.Rune)
	case syntax.OpCharClass:
		for i := 0; i < len(r.Rune); i += 2 {
			if first := max(r.Rune[i], '!'); first <= r.Rune[i+1] && unicode.IsPrint(first) {
				return string(first)
			}
		}
		return ""
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "x"
	case syntax.OpRepeat:
		return strings.Repeat(matching(r.Sub[0]), r.Min)
	case syntax.OpPlus, syntax.OpCapture, syntax.OpAlternate:
		return matching(r.Sub[0])
	case syntax.OpConcat:
		var text strings.Builder
		for _, sub := range r.Sub {
			text.WriteString(matching(sub))
		}
		return text.String()
	default:
		return ""
	}
}
