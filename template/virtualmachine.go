package template

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	virtv1 "kubevirt.io/api/core/v1"
)

// The fields of a VirtualMachine's metadata.
var (
	// carried are the fields that a rendered VirtualMachine has.
	carried = []string{"annotations", "generateName", "labels", "name", "namespace"}

	// forbidden are the fields that a template must not have, because they identify one object.
	forbidden = []string{"finalizers", "ownerReferences", "resourceVersion", "uid"}
)

// virtualMachine checks the VirtualMachine of a template, and reduces it to the form that is rendered: apiVersion, kind,
// metadata and spec.
func (c *checker) virtualMachine(n *node) {
	if n.kind != kindObject {
		c.unfit(n, vmSchema(), virtualMachineAt)
		return
	}
	group := virtv1.VirtualMachineGroupVersionKind
	rendered := []member{
		{key: "apiVersion", value: node{kind: kindString, text: group.GroupVersion().String()}},
		{key: "kind", value: node{kind: kindString, text: group.Kind}},
		{key: "metadata", value: node{kind: kindObject}},
		{key: "spec", value: node{kind: kindObject}},
	}
	for _, m := range n.members {
		at := virtualMachineAt.field(m.key)
		if m.value.kind == kindNull {
			continue
		}
		switch m.key {
		case "apiVersion":
			// As the published API, which replaces every other.
			if want := rendered[0].value.text; m.value.text != want {
				c.references.warnings.add("%s: has no effect: VirtualMachines are rendered in %s", at, want)
			}
		case "kind":
			c.constant(&m.value, at, rendered[1].value.text)
		case "metadata":
			c.metadata(&m.value, at, carried, "a VirtualMachine is created in the namespace of the request, unless its namespace is a parameter")
			rendered[2].value = m.value
		case "spec":
			c.value(&m.value, vmSchema().fields["spec"], at)
			rendered[3].value = m.value
		case "status":
			c.status(&m.value, at)
		default:
			c.fixedKey(m.key, vmSchema(), virtualMachineAt)
		}
	}
	n.members = rendered
}

func (c *checker) status(n *node, at *location) {
	if n.kind != kindObject || len(n.members) > 0 {
		c.problems.add(field.Forbidden(field.NewPath(at.String()), "a template has no status"))
	}
}

func (c *checker) constant(n *node, at *location, want string) {
	if n.kind != kindString || n.text != want {
		c.problems.add(unsupported(at.String(), n.shown(), []string{want}))
	}
}

// fixedKey reports a key that is not a field, in an object that permits no parameters in keys.
func (c *checker) fixedKey(key string, s *schema, at *location) {
	if _, segments := c.references.parse(key, at.key(key)); segments != nil {
		c.problems.invalid(at.key(key).String(), shown(key), "this key cannot be a parameter")
		return
	}
	c.unknown(s, at, key)
}

// metadata checks metadata, and reduces it to the carried fields. namespaced is the reason why a constant namespace is dropped.
func (c *checker) metadata(n *node, at *location, carried []string, namespaced string) {
	if n.kind != kindObject {
		c.unfit(n, vmSchema().fields["metadata"], at)
		return
	}
	schema := vmSchema().fields["metadata"]
	var kept []member
	for _, m := range n.members {
		place := at.field(m.key)
		if m.value.kind == kindNull {
			continue
		}
		switch {
		case slices.Contains(carried, m.key):
			c.value(&m.value, schema.fields[m.key], place)
			c.unencoded(&m.value, m.key, place)
			if m.key == "namespace" && m.value.open == nil {
				if m.value.text != "" {
					c.references.warnings.add("%s: is dropped: %s", place, namespaced)
				}
				continue
			}
			kept = append(kept, m)
		case slices.Contains(forbidden, m.key):
			if len(m.value.items) > 0 || m.value.text != "" || m.value.kind == kindObject {
				c.problems.add(field.Forbidden(field.NewPath(place.String()), "a template must not hold what belongs to one object"))
			}
		case schema.fields[m.key] != nil:
			last := len(carried) - 1
			c.references.warnings.add("%s: is dropped: of metadata a template holds only %s and %s", place, strings.Join(carried[:last], ", "), carried[last])
		default:
			c.fixedKey(m.key, schema, at)
		}
	}
	n.members = kept
}

// unencoded rejects encoders in names: names contain no quotes, and the name of a new VirtualMachine gives values to
// parameters.
func (c *checker) unencoded(n *node, field string, at *location) {
	if n.open == nil || n.kind != kindString {
		return
	}
	for _, s := range n.open.segments {
		if s.encoder != encodeNone {
			c.problems.invalid(at.String(), shown(n.text), "%s takes no encoder: write ${%s}", field, c.parameters[s.parameter].Name)
			return
		}
	}
}

// objectLabels adds the labels of the template to the VirtualMachine, to its spec.template, and to the other objects and their
// selectors.
func (c *checker) objectLabels(vm *node, others []node, labels map[string]string) {
	if len(labels) == 0 {
		return
	}
	resolved := c.labels(labels)
	c.labelAt(vm, virtualMachineAt, resolved, "metadata", "labels")
	c.labelAt(vm, virtualMachineAt, resolved, "spec", "template", "metadata", "labels")
	for i := range others {
		c.labelAt(&others[i], objectsAt.item(i), resolved, "metadata", "labels")
		if path := selectorOf(&others[i]); selects(&others[i], path, vm) {
			c.labelAt(&others[i], objectsAt.item(i), resolved, path...)
		}
	}
}

// selectorOf returns where an object selects pods by labels; nil for other kinds.
func selectorOf(object *node) []string {
	switch object.get("apiVersion").text + " " + object.get("kind").text {
	case "v1 Service":
		return []string{"spec", "selector"}
	case "networking.k8s.io/v1 NetworkPolicy":
		return []string{"spec", "podSelector", "matchLabels"}
	default:
		return nil
	}
}

// selects reports whether a selector has labels, and selects the pods of the VirtualMachine by all of them for all values of the
// parameters. With more labels of theirs it still does.
func selects(object *node, path []string, vm *node) bool {
	selector := object.at(path...)
	if path == nil || selector == nil || selector.kind != kindObject || len(selector.members) == 0 {
		return false
	}
	labels := vm.at("spec", "template", "metadata", "labels")
	for i := range selector.members {
		m := &selector.members[i]
		label := labels.at(m.key)
		if m.key == virtv1.DeprecatedVirtualMachineNameLabel {
			label = vm.at("metadata", "name")
		}
		if m.segments != nil || label == nil || !sameText(&m.value, label) {
			return false
		}
	}
	return true
}

// labelAt adds labels to the object at a path, which it creates if necessary.
func (c *checker) labelAt(target *node, at *location, labels []member, path ...string) {
	for _, key := range path {
		at = at.field(key)
		target = target.object(key)
		if target.kind != kindObject {
			if target.open != nil {
				c.problems.add(field.Forbidden(field.NewPath(labelsAt.String()), "cannot be added to "+at.String()+", which a parameter gives as a whole"))
			}
			return
		}
	}
	c.addLabels(target, labels, at)
}

// labels resolves the keys and values of objectLabels.
func (c *checker) labels(labels map[string]string) []member {
	object := node{kind: kindObject}
	for key, value := range labels {
		object.members = append(object.members, member{key: key, value: node{kind: kindString, text: value}})
	}
	sorted := make([]member, 0, len(labels))
	for _, i := range byKey(object.members) {
		sorted = append(sorted, object.members[i])
	}
	object.members = sorted
	c.value(&object, vmSchema().fields["metadata"].fields["labels"], labelsAt)
	return object.members
}

// addLabels adds labels to an object. An existing label must have the same value.
func (c *checker) addLabels(target *node, labels []member, at *location) {
	present := target.members
	for _, label := range labels {
		twin := slices.IndexFunc(present, func(m member) bool {
			return m.key == label.key && slices.Equal(m.segments, label.segments)
		})
		if twin < 0 {
			target.members = append(target.members, label)
		} else if !sameText(&present[twin].value, &label.value) {
			c.problems.add(&field.Error{
				Type: field.ErrorTypeDuplicate, Field: labelsAt.key(label.key).String(), BadValue: shown(label.key),
				Detail: "has another value in " + at.String(),
			})
		}
		if label.segments != nil && target.open == nil {
			target.open = &open{parameter: noParameter, path: at.String()}
		}
	}
}

// sameText reports whether two string values will be the same for all values of the parameters.
func sameText(a, b *node) bool {
	if a.open == nil || b.open == nil {
		return a.open == nil && b.open == nil && a.kind == b.kind && a.text == b.text
	}
	return a.open.parameter == b.open.parameter && slices.Equal(a.open.segments, b.open.segments)
}
