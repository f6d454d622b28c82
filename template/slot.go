package template

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// json appends the value of a parameter as JSON that fits a slot. A value that is not JSON is a string.
func (r *renderer) json(parameter int, s *slot) {
	value := r.values[parameter]
	if r.isUnknown(parameter) {
		r.buffer = appendString(r.buffer, value)
		return
	}
	switch s.schema.shape {
	case shapeInt, shapeUint:
		if s.schema.integer(value) {
			r.buffer = append(r.buffer, value...)
			return
		}
	case shapeBool:
		if value == "true" || value == "false" {
			r.buffer = append(r.buffer, value...)
			return
		}
	default:
	}
	p := &r.compiled.parameters[parameter]
	root := &location{name: s.path}
	tree, err := decode(value, MaxDepth-s.depth, root)
	if errors.Is(err, errNotJSON) && s.schema.takes(kindString, value) {
		// Text without quotes is a string wherever a string fits, as in KubeVirt's own engine.
		r.buffer = appendString(r.buffer, value)
		return
	}
	if err != nil {
		r.unreadable(p, s, value, err)
		return
	}
	found := validateNode(&tree, s.schema, root, p.Sensitive)
	for _, cause := range found.causes {
		cause.Detail = fmt.Sprintf("value of %s: %s", p.Name, cause.Detail)
	}
	r.problems.merge(found)
	r.buffer = tree.appendCanonical(r.buffer)
}

// unreadable reports a value that is not JSON, or has a kind that is not allowed.
func (r *renderer) unreadable(p *parameter, s *slot, value string, err error) {
	r.buffer = append(r.buffer, "null"...)
	var cause *field.Error
	switch {
	case errors.Is(err, errTooDeep):
		r.problems.add(tooLarge(s.path, "the value of "+p.Name+", with what is around it,", s.depth+depthOf([]byte(value)), MaxDepth, "levels of lists and objects"))
	case errors.As(err, &cause) && !p.Sensitive:
		cause.Detail = "value of " + p.Name + ": this key occurs twice"
		r.problems.add(cause)
	default:
		r.problems.invalid(s.path, p.shown(value), "value of %s: must be %s", p.Name, s.schema.expected())
	}
}

// validateNode compares a value without references with a schema. For a sensitive value it reports only that it does not fit: even
// the names of its fields are secret.
func validateNode(n *node, s *schema, at *location, sensitive bool) problems {
	var found problems
	(&checker{problems: &found}).value(n, s, at)
	if !sensitive || !found.any() {
		return found
	}
	var hidden problems
	hidden.invalid(at.String(), omitted, "must be %s, with nothing in it that the field does not take", s.expected())
	return hidden
}

// check checks the content of a string that was just written.
func (r *renderer) check(at uint32, s *slot) {
	text := string(r.buffer[r.mark:])
	if !s.schema.takes(kindString, text) {
		r.misfit(at, s, text)
	}
}

// join removes the quotes of a string that was just written, and is a number or a bool.
func (r *renderer) join(at uint32, s *slot) {
	if r.writes(r.marked(at), at, r.isUnknown) {
		return
	}
	text := string(r.buffer[r.mark : len(r.buffer)-len(`"`)])
	fits := s.schema.integer(text) && text != "-0"
	if s.schema.shape == shapeBool {
		fits = text == "true" || text == "false"
	}
	if !fits {
		r.misfit(at, s, text)
		return
	}
	r.buffer = append(r.buffer[:r.mark-len(`"`)], text...)
}

// marked returns the last opMark before an operation.
func (r *renderer) marked(at uint32) uint32 {
	for at > 0 && r.program.ops[at].code != opMark {
		at--
	}
	return at
}

// misfit reports a text that was written by the operations between the last opMark and at.
func (r *renderer) misfit(at uint32, s *slot, text string) {
	start := r.marked(at)
	if r.writes(start, at, r.isUnknown) {
		return
	}
	value := shown(text)
	if r.writes(start, at, r.compiled.isSensitive) {
		value = omitted
	}
	r.problems.invalid(s.path, value, "must be %s", s.schema.expected())
}

// object appends an object in which some keys depend on parameters.
func (r *renderer) object(o *openObject) {
	type entry struct {
		key    string
		member *openMember
	}
	entries := make([]entry, 0, len(o.members))
	for i := range o.members {
		m := &o.members[i]
		if m.omittable > 0 && r.values[m.omittable-1] == "" {
			continue
		}
		entries = append(entries, entry{key: join(m.key, r.values), member: m})
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	r.buffer = append(r.buffer, '{')
	for i, e := range entries {
		if i > 0 {
			if e.key == entries[i-1].key {
				r.collision(o, e.key, entries[i-1].member, e.member)
			}
			r.buffer = append(r.buffer, ',')
		}
		if e.key == "" {
			r.problems.invalid(o.path, omitted, "the key %s is empty", r.compiled.spell(e.member.key))
		}
		r.buffer = append(appendString(r.buffer, e.key), ':')
		start, before := len(r.buffer), r.problems.count()
		r.run(e.member.from, e.member.to)
		if e.member.late && r.problems.count() == before {
			r.late(o, e.key, e.member, start)
		}
	}
	r.buffer = append(r.buffer, '}')
}

// join returns the text of segments.
func join(segments []segment, values []string) string {
	if len(segments) == 1 {
		return segments[0].of(values)
	}
	var text strings.Builder
	for _, s := range segments {
		text.WriteString(s.of(values))
	}
	return text.String()
}

func (r *renderer) collision(o *openObject, key string, a, b *openMember) {
	if contain(a.key, r.isUnknown) || contain(b.key, r.isUnknown) {
		return
	}
	value := shown(key)
	if r.compiled.sensitive(a.key) || r.compiled.sensitive(b.key) {
		value = omitted
	}
	r.problems.add(&field.Error{
		Type: field.ErrorTypeDuplicate, Field: o.path, BadValue: value,
		Detail: fmt.Sprintf("the keys %s and %s become the same", r.compiled.spell(a.key), r.compiled.spell(b.key)),
	})
}

// late checks a field of a struct with a name that depends on parameters. Its value begins at start.
func (r *renderer) late(o *openObject, key string, m *openMember, start int) {
	if contain(m.key, r.isUnknown) || r.writes(m.from, m.to, r.isUnknown) {
		return
	}
	at := (&location{name: o.path}).key(r.compiled.spell(m.key))
	keyIsSensitive := r.compiled.sensitive(m.key)
	schema := o.schema.fields[key]
	if schema == nil {
		detail := "there is no such field"
		if near := Nearest(key, o.schema.names); near != "" && !keyIsSensitive {
			detail += fmt.Sprintf("; did you mean %s?", near)
		}
		value := shown(key)
		if keyIsSensitive {
			value = omitted
		}
		r.problems.invalid(at.String(), value, "%s", detail)
		return
	}
	tree, err := decode(string(r.buffer[start:]), MaxDepth, at)
	if err != nil {
		r.problems.invalid(at.String(), omitted, "%v", err)
		return
	}
	r.problems.merge(validateNode(&tree, schema, at, keyIsSensitive || r.writes(m.from, m.to, r.compiled.isSensitive)))
}

// placeholder returns a placeholder in the form of the template.
func (c *Compiled) placeholder(s segment) string {
	if s.parameter == len(c.declared()) {
		return c.spell(c.objects.own)
	}
	return "${" + c.parameters[s.parameter].Name + s.encoder.suffix() + "}"
}

// spell returns a key in the form of the template.
func (c *Compiled) spell(key []segment) string {
	var spelt strings.Builder
	for _, s := range key {
		if s.parameter == noParameter {
			spelt.WriteString(strings.ReplaceAll(s.text, "${", "$${"))
		} else {
			spelt.WriteString(c.placeholder(s))
		}
	}
	return spelt.String()
}
