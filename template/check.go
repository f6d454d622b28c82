package template

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// open describes the parameters in a value.
type open struct {
	segments  []segment // of a string with references
	parameter int       // of ${{NAME}}; otherwise noParameter
	schema    *schema   // what to check in Render; nil if any value is valid
	path      string    // the place, if it may be reported
	joined    bool      // the string consists of digits and placeholders without quotes: it is a number or a bool where one is expected
}

// joins reports whether the text is a number or a bool in the result.
func (o *open) joins() bool { return o.joined && o.schema != nil && o.schema.joins() }

// joins reports whether text that is joined of placeholders without quotes can fit, without its quotes.
func (s *schema) joins() bool {
	return s.shape == shapeInt || s.shape == shapeUint || s.shape == shapeBool
}

// checker walks a value and compares it with a schema. In a template it resolves the references on its way; in the value of
// a parameter it takes text literally.
type checker struct {
	problems   *problems
	references *references // if nil, text is literal
	parameters []parameter
}

// value checks n, and drops members of structs and maps that are null, as the API
// server does.
func (c *checker) value(n *node, s *schema, at *location) {
	if c.references != nil && n.kind == kindString && !c.references.value(n, at) {
		return
	}
	if n.open != nil {
		c.opened(n, s, at)
		return
	}
	switch s.shape {
	case shapeStruct, shapeMap:
		if n.kind != kindObject {
			c.unfit(n, s, at)
			return
		}
		c.members(n, s, at)
	case shapeList:
		if n.kind != kindList {
			c.unfit(n, s, at)
			return
		}
		for i := range n.items {
			c.value(&n.items[i], s.elem, at.item(i))
		}
	case shapeAny:
		c.untyped(n, at)
	default:
		if !s.takes(n.kind, n.text) {
			c.unfit(n, s, at)
		}
	}
}

var anything = &schema{shape: shapeAny}

func (c *checker) untyped(n *node, at *location) {
	switch n.kind {
	case kindList:
		for i := range n.items {
			c.value(&n.items[i], anything, at.item(i))
		}
	case kindObject:
		c.members(n, anything, at)
	default:
	}
}

func (c *checker) members(n *node, s *schema, at *location) {
	kept := n.members[:0]
	for _, m := range n.members {
		if m.value.kind == kindNull && s.shape != shapeAny {
			continue
		}
		place, keyPlace := c.place(s, at, m.key), at
		if c.references != nil {
			c.references.key(&m, keyPlace.key(m.key))
		}
		elem := s.elem
		switch {
		case s.shape == shapeAny:
			elem = anything
		case s.shape == shapeMap:
		case m.segments != nil:
			// The field is determined in Render; its value is checked then.
			elem = anything
		default:
			elem = s.fields[m.key]
			if elem == nil {
				c.unknown(s, at, m.key)
				elem = anything
			}
		}
		c.value(&m.value, elem, place)
		kept = append(kept, m)
	}
	n.members = kept
	if c.references == nil {
		return
	}
	c.resolved(n, s, at)
}

// resolved checks the keys of an object after their references were resolved.
func (c *checker) resolved(n *node, s *schema, at *location) {
	var literal []member
	for i := range n.members {
		if n.members[i].segments == nil {
			literal = append(literal, n.members[i])
		} else if n.open == nil {
			n.open = &open{parameter: noParameter, path: at.String()}
			if s.shape == shapeStruct {
				n.open.schema = s
			}
		}
	}
	if key, found := repeated(literal); found {
		c.problems.add(&field.Error{
			Type: field.ErrorTypeDuplicate, Field: c.place(s, at, key).String(), BadValue: shown(key),
			Detail: "two keys are the same once $${ is replaced",
		})
	}
}

func (c *checker) place(s *schema, at *location, key string) *location {
	switch s.shape {
	case shapeMap:
		return at.key(key)
	case shapeStruct:
		return at.field(key)
	default:
		return at.member(key)
	}
}

func (c *checker) unknown(s *schema, at *location, name string) {
	if c.problems.full() {
		c.problems.more++
		return
	}
	detail := "there is no such field"
	if near := Nearest(name, s.names); near != "" {
		detail += fmt.Sprintf("; did you mean %s?", near)
	}
	c.problems.invalid(at.member(name).String(), omitted, "%s", detail)
}

func (c *checker) unfit(n *node, s *schema, at *location) {
	c.problems.invalid(at.String(), n.shown(), "must be %s, not %s", s.expected(), n.what(s))
}

// what describes a value that does not fit s.
func (n *node) what(s *schema) string {
	switch {
	case n.kind == kindNumber && (s.shape == shapeInt || s.shape == shapeUint):
		return "this number"
	case n.kind == kindString && (s.shape == shapeQuantity || s.shape == shapeTime):
		return "this text"
	default:
		return n.kind.String()
	}
}

// opened checks a value with references as far as possible before they are replaced, and stores on the node what remains to
// be checked.
func (c *checker) opened(n *node, s *schema, at *location) {
	if n.open.parameter == noParameter {
		switch s.shape {
		case shapeAny, shapeString, shapeIntOrString:
		case shapeQuantity, shapeTime:
			n.open.schema, n.open.path = s, at.String()
		default:
			if n.open.joined && s.joins() {
				n.open.schema, n.open.path = s, at.String()
				c.joined(n, s, at)
				return
			}
			c.problems.invalid(at.String(), shown(n.text), "must be %s, not a string: a parameter gives that only as the whole value, written ${{NAME}}", s.expected())
		}
		return
	}
	n.open.schema, n.open.path = s, at.String()
	p := &c.parameters[n.open.parameter]
	if !s.mayTake(p.Type) {
		c.problems.invalid(at.String(), shown(n.text), "must be %s, which %s of type %s never is%s", s.expected(), p.Name, p.Type, s.hint(p))
	}
}

// joined checks digits and placeholders that are joined to one value, as far as they are known.
func (c *checker) joined(n *node, s *schema, at *location) {
	for _, segment := range n.open.segments {
		switch {
		case segment.parameter == noParameter && (s.shape == shapeBool || s.shape == shapeUint && segment.text[0] == '-'):
			c.problems.invalid(at.String(), shown(n.text), "must be %s, which no text with %q is", s.expected(), segment.text)
			return
		case segment.parameter != noParameter && c.parameters[segment.parameter].Type == v1beta1.ParameterTypeBase64:
			p := &c.parameters[segment.parameter]
			c.problems.invalid(at.String(), shown(n.text), "must be %s, which no text with %s of type %s is", s.expected(), p.Name, p.Type)
			return
		}
	}
}

func (s *schema) hint(p *parameter) string {
	if s.shape == shapeString || s.shape == shapeAny {
		return fmt.Sprintf(": write ${%s}", p.Name)
	}
	return ""
}

// mayTake reports whether a value of this type, read as JSON, can fit.
func (s *schema) mayTake(t v1beta1.ParameterType) bool {
	switch t {
	case v1beta1.ParameterTypeInt:
		return s.shape == shapeAny || s.shape == shapeInt || s.shape == shapeUint || s.shape == shapeQuantity || s.shape == shapeIntOrString
	case v1beta1.ParameterTypeBool:
		return s.shape == shapeAny || s.shape == shapeBool
	case v1beta1.ParameterTypeBase64:
		return false
	default:
		return true
	}
}

// takes reports whether a scalar fits.
func (s *schema) takes(k kind, text string) bool {
	switch s.shape {
	case shapeString:
		return k == kindString
	case shapeBool:
		return k == kindBool
	case shapeInt:
		return k == kindNumber && s.integer(text)
	case shapeUint:
		return k == kindNumber && s.integer(text)
	case shapeIntOrString:
		return k == kindString || k == kindNumber && (&schema{shape: shapeInt, bits: 32}).integer(text)
	case shapeQuantity:
		return (k == kindString || k == kindNumber) && isQuantity(text)
	case shapeTime:
		return k == kindString && isTime(text)
	default:
		return s.shape == shapeAny
	}
}

func (s *schema) integer(text string) bool {
	if !isInteger(text) {
		return false
	}
	var err error
	if s.shape == shapeUint {
		_, err = strconv.ParseUint(text, 10, s.bits)
	} else {
		_, err = strconv.ParseInt(text, 10, s.bits)
	}
	return err == nil
}

func isQuantity(text string) bool {
	_, ok := quantity(text)
	return ok
}

func quantity(text string) (resource.Quantity, bool) {
	// A quantity is short; resource.ParseQuantity is slow for long ones, and takes a minute for 1e-100000000.
	const longest, longestExponent = 64, 3
	if len(text) > longest || strings.TrimSpace(text) != text {
		return resource.Quantity{}, false
	}
	if e := strings.IndexAny(text, "eE"); e >= 0 && len(text)-e-1 > longestExponent {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}
