package template

import (
	"maps"
	"slices"
)

// Conceal returns a VirtualMachine that the template has rendered, with a replacement for every value that contains a parameter for which conceals
// returns true. A list or an object is replaced as a whole if such a parameter determines which items or keys it has. It shares values with vm,
// which is not changed.
func (c *Compiled) Conceal(vm map[string]any, conceals func(name string) bool, replacement any) map[string]any {
	declared := c.declared()
	concealed := make([]bool, len(declared))
	found := false
	for i := range declared {
		concealed[i] = conceals(declared[i].Name)
		found = found || concealed[i]
	}
	if !found {
		return vm
	}
	walk := concealing{concealed: concealed, replacement: replacement}
	result, _ := walk.value(c.outline.of(&c.program), vm).(map[string]any)
	return result
}

type concealing struct {
	concealed   []bool
	replacement any
}

// value returns a value that a node has rendered.
func (w concealing) value(n *node, value any) any {
	if w.shows(n) {
		return w.replacement
	}
	switch value := value.(type) {
	case map[string]any:
		return w.object(n, value)
	case []any:
		return w.list(n, value)
	default:
		return value
	}
}

func (w concealing) object(n *node, value map[string]any) any {
	result := maps.Clone(value)
	for i := range n.members {
		m := &n.members[i]
		switch below, rendered := value[m.key]; {
		case m.segments == nil && rendered:
			result[m.key] = w.value(&m.value, below)
		case m.segments != nil && (w.among(m.segments) || w.within(&m.value)):
			// The key is not searched.
			return w.replacement
		}
	}
	return result
}

func (w concealing) list(n *node, value []any) any {
	if len(n.items) != len(value) {
		if w.within(n) {
			return w.replacement
		}
		return value
	}
	result := slices.Clone(value)
	for i := range result {
		result[i] = w.value(&n.items[i], value[i])
	}
	return result
}

// shows reports whether a node itself, not one below it, contains a concealed parameter.
func (w concealing) shows(n *node) bool {
	return n.open != nil && (n.open.parameter != noParameter && w.is(n.open.parameter) || w.among(n.open.segments))
}

// within reports whether a node or one below it contains a concealed parameter.
func (w concealing) within(n *node) bool {
	return w.shows(n) ||
		slices.ContainsFunc(n.items, func(item node) bool { return w.within(&item) }) ||
		slices.ContainsFunc(n.members, func(m member) bool { return w.among(m.segments) || w.within(&m.value) })
}

func (w concealing) among(segments []segment) bool {
	return slices.ContainsFunc(segments, func(s segment) bool { return s.parameter != noParameter && w.is(s.parameter) })
}

// is reports whether a parameter is concealed. The one behind the declared ones is the name of the VirtualMachine.
func (w concealing) is(parameter int) bool {
	return parameter < len(w.concealed) && w.concealed[parameter]
}
