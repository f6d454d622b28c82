package template

import (
	"maps"
	"slices"
	"strings"

	virtv1 "kubevirt.io/api/core/v1"
)

// compareObject compares the whole object.
func (m *matcher) compareObject(vm map[string]any) {
	root := m.compiled.outline.of(&m.compiled.program)
	for i := range root.members {
		part, v := &root.members[i], vm[root.members[i].key]
		at := m.key(0, part.key)
		switch part.key {
		case "apiVersion":
			// The version is that of the API by which the object was read.
			if text, is := v.(string); is && strings.HasPrefix(text, virtv1.GroupVersion.Group+"/") {
				continue
			}
			m.identity(&part.value, v, at)
		case "kind":
			m.identity(&part.value, v, at)
		case "metadata":
			m.metadata(&part.value, v, at)
		default:
			m.value(&part.value, vmSchema().fields[part.key], v, at, false)
		}
	}
}

// identity compares fields that an object decoded as an item of a list may lack.
func (m *matcher) identity(n *node, v any, at int32) {
	if v != nil {
		m.value(n, anything, v, at, false)
	}
}

func (m *matcher) metadata(n *node, v any, at int32) {
	m.accept(v)
	object, is := v.(map[string]any)
	if !is && v != nil {
		m.differ(at, kindObject.String(), describe(v))
		return
	}
	schema := vmSchema().fields["metadata"]
	for i := range n.members {
		field := &n.members[i]
		v, at := object[field.key], m.key(at, field.key)
		switch field.key {
		case "name":
			m.name(&field.value, v, at)
		case "generateName":
			// The VirtualMachine has the requested one, or none.
			m.late = append(m.late, lateLeaf{node: &field.value, value: v, at: at})
		case "namespace":
			if !field.value.mayBeEmptyText() {
				m.value(&field.value, schema.fields[field.key], v, at, false)
				continue
			}
			m.late = append(m.late, lateLeaf{node: &field.value, value: v, at: at, binding: true})
		case "labels":
			m.owned(&field.value, schema.fields[field.key], v, at, ownedLabel)
		case "annotations":
			m.owned(&field.value, schema.fields[field.key], v, at, IsContract)
		}
	}
}

// mayBeEmptyText reports whether a text of the template consists of parameters only.
func (n *node) mayBeEmptyText() bool {
	return n.isWhole() || n.open != nil && !slices.ContainsFunc(n.open.segments, func(s segment) bool { return s.parameter == noParameter })
}

// name compares metadata.name as BindName does: a name that does not fit is no difference. With emptyInName, it is one if empty values make it fit.
func (m *matcher) name(n *node, v any, at int32) {
	text, is := v.(string)
	if m.compiled.name != nil && is {
		free := parts(m.compiled.name, func(int) (string, bool) { return "", false })
		m.steps += len(text)
		if _, fits := matchName(free, text); fits {
			m.value(n, vmSchema().fields["metadata"].fields["name"], v, at, false)
			return
		}
		if m.emptyInName && m.mayRead(m.compiled.name, text) {
			m.namedByEmpty = true
			m.value(n, vmSchema().fields["metadata"].fields["name"], v, at, false)
			return
		}
	}
	m.late = append(m.late, lateLeaf{node: n, value: v, at: at})
}

// value compares a value of the template with one of the VirtualMachine, which is nil if there is none. If kept is true, an
// empty value is not the same as none: the Go types of KubeVirt have a pointer there, or it is in a map or a list.
func (m *matcher) value(n *node, s *schema, v any, at int32, kept bool) {
	m.steps++
	m.accept(v)
	switch {
	case m.over():
	case n.open != nil && n.open.parameter != noParameter:
		m.whole(n, s, v, at, kept)
	case n.kind == kindString && n.open != nil:
		m.openText(n.open.segments, s, v, at, kept)
	case n.kind == kindObject:
		m.object(n, s, v, at, kept, nil)
	case n.kind == kindList:
		m.compareLists(n, s, v, at)
	default:
		m.scalar(n, s, v, at, kept)
	}
}

func (m *matcher) scalar(n *node, s *schema, v any, at int32, kept bool) {
	switch {
	case v == nil && (n.kind == kindNull || !kept && n.zero()):
	case v != nil && s.same(n.kind, n.text, v):
	default:
		m.differ(at, n.describe(), describe(v))
	}
	m.steps += len(n.text)
}

// owned compares an object, except for the keys that owned accepts.
func (m *matcher) owned(n *node, s *schema, v any, at int32, owned func(string) bool) {
	m.accept(v)
	if n.kind == kindObject {
		m.object(n, s, v, at, false, owned)
		return
	}
	if object, is := v.(map[string]any); is {
		object = maps.Clone(object)
		maps.DeleteFunc(object, func(key string, _ any) bool { return owned(key) })
		v = object
	}
	m.value(n, s, v, at, false)
}

func (m *matcher) object(n *node, s *schema, v any, at int32, kept bool, owned func(string) bool) {
	object, is := v.(map[string]any)
	if !is && v != nil || v == nil && kept && s.shape != shapeAny {
		m.differ(at, kindObject.String(), describe(v))
		return
	}
	var open *choices
	for i := range n.members {
		child := &n.members[i]
		switch {
		case m.over():
			return
		case child.segments != nil:
			if open == nil {
				open = m.keys(n, object, owned)
			}
			m.add(constraint{kind: constrainKey, node: &child.value, segments: child.segments, schema: s, at: at, choices: open}, child.segments, noParameter)
		case child.value.kind == kindNull:
			// Null is equivalent to none, and additional fields are no difference.
		case s.replaced(child.key, object):
		case owned == nil || !owned(child.key):
			schema, kept := s.child(child.key)
			m.value(&child.value, schema, object[child.key], m.key(at, child.key), kept)
		}
	}
}

// replaced reports whether KubeVirt replaces a member of an object by the name of the object that it inferred: an instance
// type or a preference that is inferred from a volume.
func (s *schema) replaced(key string, object map[string]any) bool {
	if key != "inferFromVolume" && key != "inferFromVolumeFailurePolicy" || object[key] != nil || object["name"] == nil {
		return false
	}
	spec := vmSchema().fields["spec"]
	return s == spec.fields["instancetype"] || s == spec.fields["preference"]
}

// child returns the schema of a member, and whether an empty value there is not the same as none.
func (s *schema) child(key string) (child *schema, kept bool) {
	switch s.shape {
	case shapeStruct:
		if field := s.fields[key]; field != nil {
			return field, s.pointers[key]
		}
		return anything, true
	case shapeMap:
		return s.elem, true
	default:
		return anything, true
	}
}
