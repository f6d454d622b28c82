package template

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// BindName reads the values of parameters out of the name of a VirtualMachine, which it compares with metadata.name of the
// template: the template web-${NUMBER} and the name web-7 make NUMBER 7. It returns only what the name binds; values are
// those given explicitly, and are literal text in the comparison.
//
// Each placeholder takes at least one character, and as few as possible, from left to right. A name that does not fit is no
// error; it binds nothing. Errors, at metadata.name, are a name that would fit without an explicit value, and one that gives
// two values to a parameter that occurs twice.
//
// It takes time in proportion to the length of the name.
func (c *Compiled) BindName(name string, values map[string]string) (map[string]string, error) {
	if c.name == nil || name == "" {
		return nil, nil
	}
	bound, fits := matchName(parts(c.name, c.explicit(values)), name)
	if !fits {
		free := parts(c.name, func(int) (string, bool) { return "", false })
		if _, would := matchName(free, name); would {
			return nil, c.nameConflict(name, values)
		}
		return nil, nil
	}
	if len(bound) == 0 {
		return nil, nil
	}
	result := make(map[string]string, len(bound))
	for _, b := range bound {
		p := &c.parameters[b.parameter]
		if before, twice := result[p.Name]; twice && before != b.value {
			detail := fmt.Sprintf("the template names its VirtualMachines %s, so %s would have to be two things", c.pattern, p.Name)
			if !p.Sensitive {
				detail += fmt.Sprintf(", %q and %q", before, b.value)
			}
			return nil, invalidName(name, detail)
		}
		result[p.Name] = b.value
	}
	return result, nil
}

// explicit returns the given values by parameter.
func (c *Compiled) explicit(values map[string]string) func(parameter int) (string, bool) {
	return func(parameter int) (string, bool) {
		p := &c.parameters[parameter]
		value, given := values[p.Name]
		return value, given && (value != "" || p.generator == nil)
	}
}

func (c *Compiled) nameConflict(name string, values map[string]string) error {
	var given []string
	for _, s := range c.name {
		if s.parameter == noParameter {
			continue
		}
		p := &c.parameters[s.parameter]
		value, explicit := values[p.Name]
		if !explicit {
			continue
		}
		what := p.Name
		if !p.Sensitive {
			what = fmt.Sprintf("%s=%v", p.Name, shown(value))
		}
		if !slices.Contains(given, what) {
			given = append(given, what)
		}
	}
	return invalidName(name, fmt.Sprintf("the template names its VirtualMachines %s, which does not become this name with the given %s", c.pattern, strings.Join(given, ", ")))
}

func invalidName(name, detail string) error {
	return &InvalidError{Causes: field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), shown(name), detail)}}
}

// part is a piece of a name: literal text, or a run of placeholders with nothing between them.
type part struct {
	literal      string
	placeholders []int
}

// parts turns the segments of a name into alternating literals and placeholders. Placeholders with an explicit value are
// literal.
func parts(segments []segment, explicit func(int) (string, bool)) []part {
	var all []part
	for _, s := range segments {
		literal, is := s.text, s.parameter == noParameter
		if !is {
			literal, is = explicit(s.parameter)
		}
		last := len(all) - 1
		switch {
		case is && literal == "":
		case is && last >= 0 && all[last].placeholders == nil:
			all[last].literal += literal
		case is:
			all = append(all, part{literal: literal})
		case last >= 0 && all[last].placeholders != nil:
			all[last].placeholders = append(all[last].placeholders, s.parameter)
		default:
			all = append(all, part{placeholders: []int{s.parameter}})
		}
	}
	return all
}

// bound is the text of a placeholder.
type bound struct {
	parameter int
	value     string
}

// matchName compares a name with the parts of a pattern. It never backtracks: placeholders match any text, so the first
// place where a literal fits is as good as any later one.
func matchName(parts []part, name string) (all []bound, fits bool) {
	var waiting []int // placeholders without an end yet
	for i, p := range parts {
		if p.placeholders != nil {
			waiting = p.placeholders
			continue
		}
		end := 0
		if waiting != nil {
			if end = minimum(name, len(waiting)); end < 0 {
				return nil, false
			}
			if i == len(parts)-1 {
				end = max(end, len(name)-len(p.literal))
			} else if found := strings.Index(name[end:], p.literal); found >= 0 {
				end += found
			}
		}
		if !strings.HasPrefix(name[end:], p.literal) {
			return nil, false
		}
		all = spread(all, waiting, name[:end])
		name, waiting = name[end+len(p.literal):], nil
	}
	if waiting == nil {
		return all, name == ""
	}
	if minimum(name, len(waiting)) < 0 {
		return nil, false
	}
	return spread(all, waiting, name), true
}

// minimum returns the length of the first n characters of text, or -1 if it has fewer.
func minimum(text string, n int) int {
	length := 0
	for range n {
		_, size := utf8.DecodeRuneInString(text[length:])
		if size == 0 {
			return -1
		}
		length += size
	}
	return length
}

// spread gives each placeholder one character of text, and the last the rest.
func spread(all []bound, placeholders []int, text string) []bound {
	for i, p := range placeholders {
		size := len(text)
		if i < len(placeholders)-1 {
			size = minimum(text, 1)
		}
		all = append(all, bound{parameter: p, value: text[:size]})
		text = text[size:]
	}
	return all
}
