// Package definition reads the schemas of CustomResourceDefinitions, in the kind of JSON Schema that Rego's type checker supports.
//
// The generator of the embedded schemas uses it, and the manager, which adds the fields of the installed definitions to them.
package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
)

// The bounds of the schema of one definition. KubeVirt's VirtualMachine has 800 fields with names of 8 kB, 13 deep.
const (
	MaxFields = 10_000
	// MaxNameBytes of the names of all fields together.
	MaxNameBytes = 256 << 10
	// MaxDepth is the number of fields and lists in each other.
	MaxDepth = 64
)

// Schema is the part of a structural schema that defines fields and their types; the API server validates values.
type Schema struct {
	Type       string            `json:"type,omitempty"`
	Properties map[string]Schema `json:"properties,omitempty"`
	Items      *Schema           `json:"items,omitempty"`
	Preserve   bool              `json:"x-kubernetes-preserve-unknown-fields,omitempty"`
	IntOrText  bool              `json:"x-kubernetes-int-or-string,omitempty"`
	Embedded   bool              `json:"x-kubernetes-embedded-resource,omitempty"`
	AnyOf      []Schema          `json:"anyOf,omitempty"`
}

// definition is the part of a CustomResourceDefinition that is read.
type definition struct {
	Spec struct {
		Versions []struct {
			Name    string
			Storage bool
			Schema  struct{ OpenAPIV3Schema *Schema }
		}
	}
}

// ErrNoFields is the error of a definition that does not define fields.
var ErrNoFields = errors.New("the schema defines no fields")

// Read returns the schema of a version of a definition in JSON; that of the stored version if version is empty.
func Read(content []byte, version string) (Schema, error) {
	var crd definition
	if err := json.Unmarshal(content, &crd); err != nil {
		return Schema{}, fmt.Errorf("decoding the definition: %w", err)
	}
	for _, each := range crd.Spec.Versions {
		if version != each.Name && (version != "" || !each.Storage) {
			continue
		}
		if each.Schema.OpenAPIV3Schema == nil || len(each.Schema.OpenAPIV3Schema.Properties) == 0 {
			return Schema{}, ErrNoFields
		}
		return *each.Schema.OpenAPIV3Schema, nil
	}
	if version == "" {
		return Schema{}, errors.New("no version is stored")
	}
	return Schema{}, fmt.Errorf("there is no version %s", version)
}

// intOrText is the schema of quantities.
var intOrText = Schema{AnyOf: []Schema{{Type: "number"}, {Type: "string"}}}

// Reduced returns the schema without the parts that the type checker does not use. A value without a schema may be anything.
func (s Schema) Reduced() (Schema, error) {
	var w walk
	reduced := w.reduced(s, 0)
	return reduced, w.err
}

// Extended returns a reduced schema with the fields that another one has in addition, and their number. Nothing is removed and no type is changed: if
// the types of a field differ, that of s is used, and what may have any field in s still may.
func (s Schema) Extended(by Schema) (extended Schema, added int, err error) {
	var w walk
	extended = w.extended(s, by, 0)
	return extended, w.added, w.err
}

// walk goes through a schema within the bounds. The first error ends it.
type walk struct {
	fields, bytes, added int
	err                  error
}

// enter counts a field, or the items of a list, which have no name. It returns false beyond a bound.
func (w *walk) enter(name string, depth int) bool {
	if name != "" {
		w.fields++
	}
	w.bytes += len(name)
	switch {
	case w.err != nil:
	case depth > MaxDepth:
		w.err = fmt.Errorf("the schema is more than %d fields deep", MaxDepth)
	case w.fields > MaxFields:
		w.err = fmt.Errorf("the schema has more than %d fields", MaxFields)
	case w.bytes > MaxNameBytes:
		w.err = fmt.Errorf("the names of the fields have more than %d bytes", MaxNameBytes)
	}
	return w.err == nil
}

func (w *walk) reduced(s Schema, depth int) Schema {
	if s.Preserve || s.Embedded {
		return Schema{}
	}
	if s.IntOrText {
		return intOrText
	}
	result := Schema{Type: s.Type}
	if len(s.Properties) > 0 {
		result.Properties = map[string]Schema{}
		for name, property := range s.Properties {
			if !w.enter(name, depth+1) {
				return Schema{}
			}
			result.Properties[name] = w.reduced(property, depth+1)
		}
	}
	if s.Items != nil && w.enter("", depth+1) {
		items := w.reduced(*s.Items, depth+1)
		result.Items = &items
	}
	return result
}

func (w *walk) extended(base, by Schema, depth int) Schema {
	switch {
	case len(base.Properties) > 0 && (by.Type == "object" || by.Type == ""):
		properties := maps.Clone(base.Properties)
		for name, property := range by.Properties {
			if !w.enter(name, depth+1) {
				return Schema{}
			}
			if known, found := properties[name]; found {
				properties[name] = w.extended(known, property, depth+1)
				continue
			}
			before := w.fields
			properties[name] = w.reduced(property, depth+1)
			w.added += 1 + w.fields - before
		}
		base.Properties = properties
	case base.Items != nil && by.Type == "array" && by.Items != nil && w.enter("", depth+1):
		items := w.extended(*base.Items, *by.Items, depth+1)
		base.Items = &items
	}
	return base
}
