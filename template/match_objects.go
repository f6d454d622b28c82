package template

import (
	"encoding/base64"
	"slices"

	contract "github.com/vmstencil/stencil/api/template"
)

// MatchedObject identifies one of the other objects of a template.
type MatchedObject struct {
	APIVersion, Kind string
	// Name is the name that it has for the VirtualMachine. It is empty if the VirtualMachine does not show a parameter of the
	// name.
	Name string
}

// AndObjects compares the other objects of the template, too: objects has one for each, in the order of MatchedObjects, and nil
// for one that does not exist. An object without content is not compared. They show values of the same parameters as the
// VirtualMachine. The paths of their differences begin with objects[INDEX], and no value of a Secret is in them.
func AndObjects(objects []map[string]any) MatchOption {
	return func(m *matcher) { m.objects = objects }
}

// MatchedObjects returns the other objects of the template, in their order.
func (m *Match) MatchedObjects() []MatchedObject {
	c := m.compiled
	if c.objects == nil {
		return nil
	}
	root := c.objects.outline.of(&c.objects.program)
	found := make([]MatchedObject, len(c.objects.identities))
	for i := range found {
		item := &root.items[i]
		found[i] = MatchedObject{APIVersion: item.get("apiVersion").text, Kind: item.get("kind").text}
		if name := parts(c.objects.identities[i].name, m.value); len(name) == 1 && name[0].placeholders == nil {
			found[i].Name = name[0].literal
		}
	}
	return found
}

// value returns the value of a parameter that the VirtualMachine shows, or that was given, or the default.
func (m *Match) value(parameter int) (string, bool) {
	if parameter == len(m.compiled.declared()) {
		return shortened(m.name), m.name != ""
	}
	p := &m.compiled.parameters[parameter]
	if value, shown := m.values[p.Name]; shown {
		return value, true
	}
	if value, given := m.given[p.Name]; given {
		return value, true
	}
	return p.Value, p.generator == nil
}

// compareObjects compares the other objects.
func (m *matcher) compareObjects() {
	objects := m.compiled.objects
	if objects == nil || len(m.objects) != len(objects.identities) {
		return
	}
	root, list := objects.outline.of(&objects.program), m.key(0, "objects")
	for i := range root.items {
		object, at := m.objects[i], m.place(place{kind: placeIndex, parent: list, index: int32(i)})
		switch {
		case object == nil:
			m.differ(at, kindObject.String(), describe(nil))
		case len(object) > 0:
			m.compareOther(&root.items[i], object, at, objects.identities[i].secret())
		}
	}
}

func (m *matcher) compareOther(n *node, object map[string]any, at int32, secret bool) {
	for i := range n.members {
		part := &n.members[i]
		v, at := object[part.key], m.key(at, part.key)
		switch {
		case part.key == "apiVersion", part.key == "kind":
			// The object was read by them.
			continue
		case part.key == "metadata":
			m.otherMetadata(&part.value, v, at)
			continue
		case secret && part.key == "stringData":
			v = decoded64(object["data"])
		}
		if secret {
			m.secrets = append(m.secrets, at)
		}
		m.value(&part.value, anything, v, at, false)
	}
}

func (m *matcher) otherMetadata(n *node, v any, at int32) {
	metadata, _ := v.(map[string]any)
	for i := range n.members {
		field := &n.members[i]
		if v, at := metadata[field.key], m.key(at, field.key); field.key != "namespace" {
			m.owned(&field.value, anything, v, at, func(key string) bool { return key == contract.LabelObjectOwner })
		}
	}
}

// decoded64 returns the data of a Secret as text.
func decoded64(data any) any {
	values, is := data.(map[string]any)
	if !is {
		return data
	}
	texts := make(map[string]any, len(values))
	for key, value := range values {
		text, _ := value.(string)
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return data
		}
		texts[key] = string(decoded)
	}
	return texts
}

// secret reports whether an object is a Secret, whose values are not shown.
func (id *identity) secret() bool { return id.group == "" && id.kind == "Secret" }

// secretly reports whether a place is in the content of a Secret.
func (m *matcher) secretly(at int32) bool {
	for ; at > 0 && len(m.secrets) > 0; at = m.places[at].parent {
		if slices.Contains(m.secrets, at) {
			return true
		}
	}
	return false
}
