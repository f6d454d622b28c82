package template

import (
	"slices"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	virtv1 "kubevirt.io/api/core/v1"
)

// objects are the objects of a template besides the VirtualMachine.
type objects struct {
	program    program // of a list of them
	outline    outline // of program
	identities []identity
	own        []segment // metadata.name of the VirtualMachine, if Secrets of secretize are named after it
}

// identity is what no two objects of a template have in common. The version of the API is not part of it, because it does
// not make another object.
type identity struct {
	group, kind string
	name        []segment
	// lent reports that the template lends the right to create the object.
	lent bool
}

// Values of the field rights of an object, which is not rendered.
const (
	rightsUser     = "User"
	rightsTemplate = "Template"
)

// carriedByObjects are the fields of metadata that a rendered object besides the VirtualMachine has.
var carriedByObjects = []string{"annotations", "labels", "name", "namespace"}

// Objects returns the kind and the name of each object besides the VirtualMachine, in their order and with placeholders as in
// the template, for example "Secret ${NAME}-keys".
func (c *Compiled) Objects() []string {
	if c.objects == nil {
		return nil
	}
	names := make([]string, len(c.objects.identities))
	for i := range names {
		id := &c.objects.identities[i]
		names[i] = id.kind + " " + c.spell(id.name)
	}
	return names
}

// ObjectKinds returns the kind of each object besides the VirtualMachine, in their order.
func (c *Compiled) ObjectKinds() []apischema.GroupKind {
	if c.objects == nil {
		return nil
	}
	kinds := make([]apischema.GroupKind, len(c.objects.identities))
	for i, id := range c.objects.identities {
		kinds[i] = apischema.GroupKind{Group: id.group, Kind: id.kind}
	}
	return kinds
}

// LendsObject reports whether the template lends users the right to create one of its Objects, by rights: Template.
func (c *Compiled) LendsObject(i int) bool { return c.objects.identities[i].lent }

// objects checks the objects besides the VirtualMachine, which was checked before, and reduces them to the form that is
// rendered.
func (c *checker) objects(others []node, vm *node) []identity {
	var namespace *node
	if metadata := vm.get("metadata"); metadata != nil {
		namespace = metadata.get("namespace")
	}
	identities := make([]identity, len(others))
	for i := range others {
		at := objectsAt.item(i)
		identities[i] = c.object(&others[i], namespace, at)
		for j := range i {
			id, earlier := &identities[i], &identities[j]
			if id.name != nil && id.alike(earlier) && slices.Equal(id.name, earlier.name) {
				c.problems.add(duplicate(i, j, shown(id.kind+" "+others[i].get("metadata").get("name").text)))
				break
			}
		}
	}
	return identities
}

// alike reports whether two objects need different names.
func (id *identity) alike(other *identity) bool {
	return id.group == other.group && id.kind == other.kind
}

func duplicate(object, earlier int, value any) *field.Error {
	return &field.Error{
		Type: field.ErrorTypeDuplicate, Field: objectsAt.item(object).String(), BadValue: value,
		Detail: "has the kind and the name of " + objectsAt.item(earlier).String(),
	}
}

// object checks one object. namespace is that of the VirtualMachine if a parameter sets it.
func (c *checker) object(n, namespace *node, at *location) identity {
	if n.kind != kindObject {
		c.unfit(n, vmSchema(), at)
		return identity{}
	}
	var id identity
	kept := n.members[:0]
	for _, m := range n.members {
		place := at.member(m.key)
		switch {
		case m.value.kind == kindNull:
			continue
		case strings.Contains(m.key, "$"):
			c.problems.invalid(place.String(), shown(m.key), "this key cannot be a parameter")
		case m.key == "apiVersion", m.key == "kind":
		case m.key == "rights":
			id.lent = c.rights(&m.value, place)
			continue
		case m.key == "metadata":
			if generated := m.value.get("generateName"); generated != nil {
				c.problems.add(field.Forbidden(field.NewPath(place.field("generateName").String()), "an object has a name, which may contain placeholders"))
			}
			c.metadata(&m.value, place, carriedByObjects, "the object is created in the namespace of the VirtualMachine")
		case m.key == "status":
			c.status(&m.value, place)
			continue
		default:
			c.value(&m.value, anything, place)
		}
		kept = append(kept, m)
	}
	n.members = kept
	if group, _, found := strings.Cut(c.literal(n, "apiVersion", at), "/"); found {
		id.group = group
	}
	id.kind = c.literal(n, "kind", at)
	c.beside(&id, at.field("kind"))
	if metadata := n.object("metadata"); metadata.kind == kindObject {
		id.name = c.objectName(metadata, at.field("metadata").field("name"))
		c.objectNamespace(metadata, namespace, at.field("metadata").field("namespace"))
	}
	return id
}

// rights reports whether the template lends the right to create an object.
func (c *checker) rights(value *node, at *location) bool {
	if value.kind == kindString && (value.text == rightsUser || value.text == rightsTemplate) {
		return value.text == rightsTemplate
	}
	c.problems.add(field.NotSupported(field.NewPath(at.String()), value.shown(), []string{rightsUser, rightsTemplate}))
	return false
}

// literal returns a required text without placeholders: the kinds of its objects do not depend on the values that a user
// gives.
func (c *checker) literal(n *node, key string, at *location) string {
	value, place := n.get(key), at.field(key)
	switch {
	case value == nil, value.kind == kindString && value.text == "":
		c.problems.add(field.Required(field.NewPath(place.String()), ""))
	case value.kind != kindString:
		c.unfit(value, &schema{shape: shapeString}, place)
	case strings.Contains(value.text, "${"):
		c.problems.invalid(place.String(), shown(value.text), "must not contain a placeholder")
	default:
		return value.text
	}
	return ""
}

// beside rejects kinds that make VirtualMachines besides the one of the template, or hide objects from these checks.
func (c *checker) beside(id *identity, at *location) {
	switch {
	case id.group == virtv1.VirtualMachineGroupVersionKind.Group && id.kind != "":
		c.problems.add(field.Forbidden(field.NewPath(at.String()), "must not be of "+id.group+": a template has one VirtualMachine, in "+virtualMachineAt.String()))
	case id.group == "" && id.kind == "List":
		c.problems.add(field.Forbidden(field.NewPath(at.String()), "must not be a List: write its items among the objects"))
	}
}

// objectName returns the name of an object, which is required and always text, so that names can be compared.
func (c *checker) objectName(metadata *node, at *location) []segment {
	name := metadata.get("name")
	switch {
	case name == nil, name.kind == kindString && name.open == nil && name.text == "":
		c.problems.add(field.Required(field.NewPath(at.String()), ""))
		return nil
	case name.kind != kindString: // reported before
		return nil
	case name.open == nil:
		return []segment{{text: name.text, parameter: noParameter}}
	case name.open.parameter != noParameter:
		c.problems.invalid(at.String(), shown(name.text), "a name is always text: write ${%s}", c.parameters[name.open.parameter].Name)
		return nil
	default:
		return name.open.segments
	}
}

// objectNamespace gives an object the namespace of the VirtualMachine.
func (c *checker) objectNamespace(metadata, namespace *node, at *location) {
	own := metadata.get("namespace")
	switch {
	case own == nil && namespace != nil:
		metadata.members = append(metadata.members, member{key: "namespace", value: *namespace})
	case own != nil && (namespace == nil || !sameText(own, namespace)):
		c.problems.invalid(at.String(), own.shown(), "must be that of the VirtualMachine")
	}
}

// identify checks the names of the rendered objects.
func (r *renderer) identify(identities []identity) {
	names := make([]string, len(identities))
	for i := range identities {
		id := &identities[i]
		names[i] = join(id.name, r.values)
		if names[i] == "" {
			r.problems.add(field.Required(field.NewPath(objectsAt.item(i).field("metadata").field("name").String()), r.compiled.spell(id.name)+" is empty"))
			continue
		}
		for j := range i {
			earlier := &identities[j]
			if names[i] != names[j] || !id.alike(earlier) || contain(id.name, r.isUnknown) || contain(earlier.name, r.isUnknown) {
				continue
			}
			value := shown(id.kind + " " + names[i])
			if r.compiled.sensitive(id.name) || r.compiled.sensitive(earlier.name) {
				value = omitted
			}
			r.problems.add(duplicate(i, j, value))
			break
		}
	}
}
