package template

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// cloudInitSources are the sources of volumes that have data for cloud-init.
var cloudInitSources = []string{"cloudInitNoCloud", "cloudInitConfigDrive"}

// moved are the fields of these sources that secretize moves, with the key under which KubeVirt reads them in the Secret, and
// the field that refers to it.
var moved = []struct{ text, encoded, key, reference string }{
	{text: "userData", encoded: "userDataBase64", key: "userdata", reference: "secretRef"},
	{text: "networkData", encoded: "networkDataBase64", key: "networkdata", reference: "networkDataSecretRef"},
}

// ownName is a parameter behind the declared ones of a template with secretize. Its value is the name of the VirtualMachine,
// which the user chooses. It has no name, and no user sets it.
var ownName = parameterOf(&v1beta1.Parameter{})

// declared returns the parameters that the template declares.
func (c *Compiled) declared() []parameter {
	if c.objects == nil || c.objects.own == nil {
		return c.parameters
	}
	return c.parameters[:len(c.parameters)-1]
}

// named returns values for all parameters, of which values has those of the declared ones.
func (c *Compiled) named(values []string, name string) []string {
	if c.objects == nil || c.objects.own == nil {
		return values
	}
	if name == "" {
		name = join(c.objects.own, values)
	}
	return append(slices.Clip(values), shortened(name))
}

// shortened returns the name of a VirtualMachine as the names of its Secrets begin: a hyphen and the name of any volume, of 63
// characters at most, fit behind it in the name of an object.
func shortened(name string) string {
	const longest, digits = 253 - 1 - 63, 8
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:longest-1-digits], "-.") + "-" + hex.EncodeToString(sum[:])[:digits]
}

// secretize moves the data of cloud-init volumes into Secrets, which it adds to the other objects. It returns metadata.name of
// the VirtualMachine if there are any.
func (c *checker) secretize(vm *node, others []node) (own []segment, all []node, made []identity) {
	volumes, at := c.volumes(vm)
	if volumes == nil {
		return nil, others, nil
	}
	for i := range volumes.items {
		volume, place := &volumes.items[i], at.item(i)
		if !c.readable(volume, place) {
			continue
		}
		for _, source := range cloudInitSources {
			from := volume.get(source)
			if from == nil || !c.readable(from, place.field(source)) {
				continue
			}
			name := append([]segment{{parameter: len(c.parameters)}, {text: "-", parameter: noParameter}}, c.objectName(volume, place.field("name"))...)
			if secret := c.moveData(from, name, place.field(source)); secret != nil {
				c.objectNamespace(secret.get("metadata"), vm.get("metadata").get("namespace"), objectsAt)
				others = append(others, *secret)
				made = append(made, identity{kind: "Secret", name: name})
			}
		}
	}
	if len(made) == 0 {
		return nil, others, nil
	}
	metadata := vm.get("metadata")
	if name := virtualMachineAt.field("metadata").field("name"); metadata.get("name") == nil {
		c.problems.add(field.Required(field.NewPath(name.String()), "secretize names the Secrets after the VirtualMachine"))
	} else {
		own = c.objectName(metadata, name)
	}
	if len(others) > MaxObjects {
		c.problems.add(tooLarge(objectsAt.String(), "the list, with the Secrets of secretize,", len(others), MaxObjects, "objects"))
	}
	return own, others, made
}

// volumes returns the volumes of a VirtualMachine.
func (c *checker) volumes(vm *node) (*node, *location) {
	at := virtualMachineAt
	for _, key := range []string{"spec", "template", "spec", "volumes"} {
		if vm, at = vm.get(key), at.field(key); vm == nil || !c.readable(vm, at) {
			return nil, nil
		}
	}
	return vm, at
}

// readable rejects a value that may get data for cloud-init from a parameter.
func (c *checker) readable(n *node, at *location) bool {
	if n.open != nil {
		c.problems.add(field.Forbidden(field.NewPath(at.String()), "with secretize, a parameter gives neither this as a whole nor a key in it, because it could give data of cloud-init"))
	}
	return n.open == nil
}

// moveData moves the data of one volume into a Secret, and returns nil if there are none.
func (c *checker) moveData(from *node, name []segment, at *location) *node {
	text := func(value string) node { return node{kind: kindString, text: value} }
	named := node{kind: kindObject, members: []member{{key: "name", value: node{kind: kindString, open: &open{segments: name, parameter: noParameter}}}}}
	secret := &node{kind: kindObject, members: []member{{key: "apiVersion", value: text("v1")}, {key: "kind", value: text("Secret")}, {key: "metadata", value: named}}}
	found := false
	for _, m := range moved {
		present := slices.DeleteFunc([]string{m.reference, m.text, m.encoded}, func(key string) bool { return !from.has(key) })
		if len(present) == 0 || len(present) == 1 && present[0] == m.reference {
			continue
		}
		if key := at.field(present[len(present)-1]); len(present) > 1 {
			c.problems.add(field.Forbidden(field.NewPath(key.String()), "KubeVirt takes only one of "+strings.Join(present, " and ")))
			continue
		}
		key := present[0]
		value := *from.get(key)
		if value.isWhole() && c.parameters[value.open.parameter].optional() {
			c.problems.invalid(at.field(key).String(), shown(value.text), "with secretize, this must not be left out: write ${%s}, or make the parameter required", c.parameters[value.open.parameter].Name)
			continue
		}
		found = true
		from.members = slices.DeleteFunc(from.members, func(has member) bool { return has.key == m.text || has.key == m.encoded })
		from.members = append(from.members, member{key: m.reference, value: named})
		into := "stringData"
		if key == m.encoded {
			into = "data"
		}
		data := secret.object(into)
		data.members = append(data.members, member{key: m.key, value: value})
	}
	if !found {
		return nil
	}
	return secret
}

// has reports whether an object has a member that is not an empty text.
func (n *node) has(key string) bool {
	value := n.get(key)
	return value != nil && (value.kind != kindString || value.open != nil || value.text != "")
}
