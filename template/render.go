package template

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Rendered is a VirtualMachine rendered from a template, with the other objects of the template. It does not change, and is
// safe for concurrent use.
type Rendered struct {
	json    []byte
	objects []byte
	binding *Binding
}

// Render makes the VirtualMachine and the other objects of the template with these values, which must have been bound by the
// same Compiled. Values that break the schema are in an *InvalidError, with the place in the template.
func (c *Compiled) Render(b *Binding) (*Rendered, error) { return c.RenderAs(b, "") }

// RenderAs is Render for a VirtualMachine that gets this name in place of the template's. It changes the names of the Secrets
// of secretize, and not metadata.name. If name is empty, it is the template's.
func (c *Compiled) RenderAs(b *Binding, name string) (*Rendered, error) {
	if b == nil || b.compiled != c {
		return nil, errors.New("rendering a template: the values were bound for another one")
	}
	return c.render(b, name, c.objects)
}

// render makes the VirtualMachine of this name and these other objects. What depends on an unknown parameter is not checked.
func (c *Compiled) render(b *Binding, name string, others *objects, unknown ...bool) (*Rendered, error) {
	r := renderer{compiled: c, values: c.named(b.values, name), unknown: unknown}
	rendered := &Rendered{binding: b, json: r.render(&c.program, virtualMachineAt, "the rendered VirtualMachine")}
	if others != nil {
		rendered.objects = r.render(&others.program, objectsAt, "the list of the rendered objects")
		r.identify(others.identities)
	}
	if size := c.messageSize(b.values); size > MaxRenderedBytes {
		r.problems.add(tooLarge(messageAt.String(), "the rendered message", size, MaxRenderedBytes, "bytes"))
	}
	if err := r.problems.err(); err != nil {
		return nil, err
	}
	return rendered, nil
}

// render runs a program for a place in the template. what names the result in causes.
func (r *renderer) render(p *program, at *location, what string) []byte {
	r.program, r.buffer = p, nil
	size := r.size()
	if size <= MaxRenderedBytes {
		r.buffer = make([]byte, 0, size)
		r.run(0, uint32(len(p.ops)))
		size = len(r.buffer)
	}
	if size > MaxRenderedBytes {
		r.problems.add(tooLarge(at.String(), what, size, MaxRenderedBytes, "bytes of JSON"))
	}
	return r.buffer
}

// JSON returns the VirtualMachine with apiVersion, kind, metadata and spec, without white space and with the keys of every
// object in byte order. It must not be modified.
func (r *Rendered) JSON() []byte { return r.json }

// Objects returns the other objects as a JSON list, in the order of the template and in the form of JSON. It is nil if the
// template has none, and must not be modified.
func (r *Rendered) Objects() []byte { return r.objects }

// Object returns the VirtualMachine as a new tree, which the caller may change. Integers are int64, other numbers float64,
// and a json.Number if neither holds every digit.
func (r *Rendered) Object() map[string]any {
	tree, err := decode(string(r.json), 2*MaxDepth, virtualMachineAt)
	if err != nil {
		// Render returns valid JSON; its tests and fuzz targets verify this.
		panic("reading back a rendered VirtualMachine: " + err.Error())
	}
	object, _ := tree.plain().(map[string]any)
	return object
}

// Message returns the message of the template with its references replaced.
func (r *Rendered) Message() string {
	c := r.binding.compiled
	var message strings.Builder
	message.Grow(c.messageSize(r.binding.values))
	for _, s := range c.message {
		message.WriteString(s.of(r.binding.values))
	}
	return message.String()
}

func (c *Compiled) messageSize(values []string) int {
	size := 0
	sizes := sizes{values: values, size: func(text string) int { return len(text) }}
	for _, s := range c.message {
		if s.parameter == noParameter {
			size += len(s.text)
		} else {
			size += sizes.of(s.parameter, s.encoder)
		}
	}
	return size
}

// of returns the text of a segment.
func (s segment) of(values []string) string {
	if s.parameter == noParameter {
		return s.text
	}
	return s.encoder.encode(values[s.parameter])
}

// sizes are the sizes of the encoded values. Each is computed once: a hostile template refers to a long value often.
type sizes struct {
	values []string
	size   func(string) int
	known  []int // size + 1; 0 if not computed yet
}

func (s *sizes) of(parameter int, e encoder) int {
	if s.known == nil {
		s.known = make([]int, len(s.values)*encoders)
	}
	known := &s.known[parameter*encoders+int(e)]
	if *known == 0 {
		*known = 1 + s.size(e.encode(s.values[parameter]))
	}
	return *known - 1
}

// plain returns the value in the types of unstructured content in Kubernetes.
func (n *node) plain() any {
	switch n.kind {
	case kindBool:
		return n.text == "true"
	case kindNumber:
		return number(n.text)
	case kindString:
		return n.text
	case kindList:
		list := make([]any, len(n.items))
		for i := range n.items {
			list[i] = n.items[i].plain()
		}
		return list
	case kindObject:
		object := make(map[string]any, len(n.members))
		for i := range n.members {
			object[n.members[i].key] = n.members[i].value.plain()
		}
		return object
	default:
		return nil
	}
}

func number(text string) any {
	if isInteger(text) && text != "-0" {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i
		}
		return json.Number(text)
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && strconv.FormatFloat(f, 'g', -1, 64) == text {
		return f
	}
	return json.Number(text)
}

// renderer runs programs with the same values, one after another.
type renderer struct {
	compiled *Compiled
	values   []string
	unknown  []bool // by parameter: its value is a placeholder, and what depends on it is not checked; nil if there is none
	program  *program
	buffer   []byte
	mark     int // where the text that opCheck checks begins
	problems problems
}

// size returns the expected size of what the program makes. It is too large if ${{NAME}} inserts JSON that is not compact, and
// too small, by the escapes, if it inserts text.
func (r *renderer) size() int {
	const usual = 16
	var few [usual * encoders]int
	sizes := sizes{values: r.values, size: escapedSize}
	if len(r.values) <= usual {
		sizes.known = few[:]
	}
	program, total := r.program, 0
	for at := 0; at < len(program.ops); at++ {
		switch op := &program.ops[at]; op.code {
		case opText:
			total += int(op.b - op.a)
		case opValue:
			total += sizes.of(int(op.parameter), encoder(op.a))
		case opJSON:
			total += len(r.values[op.parameter])
		case opSeparator:
			total++
		case opSkip:
			if r.values[op.parameter] == "" {
				at = int(op.a) - 1
			}
		case opObject:
			total += len("{}")
			members := program.objects[op.a].members
			for i := range members {
				total += len(`"":,`)
				for _, s := range members[i].key {
					if s.parameter == noParameter {
						total += escapedSize(s.text)
					} else {
						total += sizes.of(s.parameter, s.encoder)
					}
				}
			}
		default:
		}
	}
	return total
}

// run runs the operations from, up to but without to.
func (r *renderer) run(from, to uint32) {
	program := r.program
	for at := from; at < to; at++ {
		switch op := &program.ops[at]; op.code {
		case opText:
			r.buffer = append(r.buffer, program.text[op.a:op.b]...)
		case opValue:
			r.buffer = appendEscaped(r.buffer, encoder(op.a).encode(r.values[op.parameter]))
		case opSeparator:
			if last := r.buffer[len(r.buffer)-1]; last != '{' && last != '[' {
				r.buffer = append(r.buffer, ',')
			}
		case opSkip:
			if r.values[op.parameter] == "" {
				at = op.a - 1
			}
		case opJSON:
			r.json(int(op.parameter), &program.slots[op.a])
		case opMark:
			r.mark = len(r.buffer)
		case opCheck:
			r.check(at, &program.slots[op.a])
		case opJoin:
			r.join(at, &program.slots[op.a])
		case opObject:
			r.object(&program.objects[op.a])
			at = op.b - 1
		}
	}
}

// sensitive reports whether any of the segments contains a sensitive parameter.
func (c *Compiled) sensitive(segments []segment) bool { return contain(segments, c.isSensitive) }

func (c *Compiled) isSensitive(parameter int) bool { return c.parameters[parameter].Sensitive }

// isUnknown reports whether a parameter is unknown. The one behind the declared ones is the name of the VirtualMachine.
func (r *renderer) isUnknown(parameter int) bool {
	return parameter < len(r.unknown) && r.unknown[parameter]
}

// contain reports whether any of the segments contains such a parameter.
func contain(segments []segment, such func(parameter int) bool) bool {
	return slices.ContainsFunc(segments, func(s segment) bool { return s.parameter != noParameter && such(s.parameter) })
}

// writes reports whether an operation from, up to but without to, writes such a parameter.
func (r *renderer) writes(from, to uint32, such func(parameter int) bool) bool {
	return slices.ContainsFunc(r.program.ops[from:to], func(o op) bool {
		switch o.code {
		case opValue, opJSON:
			return such(int(o.parameter))
		case opObject:
			return slices.ContainsFunc(r.program.objects[o.a].members, func(m openMember) bool { return contain(m.key, such) })
		default:
			return false
		}
	})
}
