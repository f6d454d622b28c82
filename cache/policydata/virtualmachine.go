package policydata

import (
	"slices"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// vm is what is stored of a VirtualMachine. There can be many: strings that others have as well are shared.
type vm struct {
	labels labels
	size   sizing.Size
	// unsized is true if size is unknown whatever instance types exist.
	unsized bool
	// instancetype is the instance type that has the size; nil if the VirtualMachine has it.
	instancetype *instancetype
}

// instancetype is a sizing.Reference without its path and its namespace.
type instancetype struct {
	kind, name unique.Handle[string]
	revision   string
	loose      bool
}

func (v vm) equal(other vm) bool {
	if (v.instancetype == nil) != (other.instancetype == nil) || v.instancetype != nil && *v.instancetype != *other.instancetype {
		return false
	}
	return v.size == other.size && v.unsized == other.unsized && slices.Equal(v.labels, other.labels)
}

// reduce returns what is stored of a VirtualMachine.
func reduce(object *unstructured.Unstructured) vm {
	v := vm{labels: labelsOf(object.GetLabels())}
	reference, problem := sizing.Instancetype(object.Object, object.GetNamespace())
	switch {
	case problem != nil:
		v.unsized = true
	case reference != nil:
		v.instancetype = &instancetype{
			kind: unique.Make(reference.Kind), name: unique.Make(strings.Clone(reference.Name)), revision: strings.Clone(reference.Revision), loose: reference.Loose,
		}
	default:
		var err error
		v.size, err = sizing.Guest(machine.MapAt(object.Object, "spec", "template", "spec"))
		v.unsized = err != nil
	}
	return v
}

// sized returns the size of a VirtualMachine of a namespace, and whether it is known.
func (v vm) sized(namespace string, sizes Sizes) (sizing.Size, bool) {
	of := v.instancetype
	if of == nil {
		return v.size, !v.unsized
	}
	size, err := sizes.Size(sizing.Reference{Kind: of.kind.Value(), Namespace: namespace, Name: of.name.Value(), Revision: of.revision, Loose: of.loose})
	return size, err == nil
}

// label is a key and a value.
type label struct{ key, value unique.Handle[string] }

// labels of an object, in the order of their keys.
type labels []label

func labelsOf(written map[string]string) labels {
	all := make(labels, 0, len(written))
	for key, value := range written {
		all = append(all, label{unique.Make(strings.Clone(key)), unique.Make(strings.Clone(value))})
	}
	slices.SortFunc(all, func(a, b label) int { return strings.Compare(a.key.Value(), b.key.Value()) })
	return all
}

// Lookup is part of the labels.Labels of Kubernetes.
func (l labels) Lookup(key string) (value string, found bool) {
	for _, each := range l {
		if each.key.Value() == key {
			return each.value.Value(), true
		}
	}
	return "", false
}

// Has is part of the labels.Labels of Kubernetes.
func (l labels) Has(key string) bool {
	_, found := l.Lookup(key)
	return found
}

// Get is part of the labels.Labels of Kubernetes.
func (l labels) Get(key string) string {
	value, _ := l.Lookup(key)
	return value
}
