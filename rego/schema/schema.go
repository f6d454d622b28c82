// Package schema holds the schemas of the input of policies, in the kind of JSON Schema that Rego's type checker supports.
//
// The files are generated from the CustomResourceDefinitions of KubeVirt and of Stencil; see hack/generate.sh. The manager adds the fields that the
// installed definitions have in addition. A policy that reads another field, which is not in KubeVirt's API, is rejected.
package schema

import (
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/vmstencil/stencil/rego/schema/definition"
)

//go:embed files/*.json
var files embed.FS

// Kinds are the kinds of objects that there are schemas of.
func Kinds() []string {
	return []string{"VirtualMachine", "VirtualMachineTemplate", "VirtualMachineTemplateRequest", "VirtualMachineTemplateImport", "VirtualMachineTemplateExport"}
}

// Kinds that policies read beside those that they are about.
const (
	Instancetype = "VirtualMachineInstancetype"
	Preference   = "VirtualMachinePreference"
)

// Schemas are the schemas of all kinds. They are immutable.
type Schemas struct {
	kinds  map[string]definition.Schema
	digest [sha256.Size]byte
}

// Embedded returns the schemas of the API of the release.
var Embedded = sync.OnceValues(func() (*Schemas, error) {
	kinds := map[string]definition.Schema{}
	for _, kind := range append(Kinds(), Instancetype, Preference) {
		content, err := files.ReadFile("files/" + kind + ".json")
		if err != nil {
			return nil, fmt.Errorf("there is no schema of kind %q", kind)
		}
		var s definition.Schema
		if err := json.Unmarshal(content, &s); err != nil {
			return nil, fmt.Errorf("the schema of kind %s: %w", kind, err)
		}
		kinds[kind] = s
	}
	return newSchemas(kinds)
})

func newSchemas(kinds map[string]definition.Schema) (*Schemas, error) {
	// The keys of maps are sorted.
	text, err := json.Marshal(kinds)
	if err != nil {
		return nil, fmt.Errorf("encoding the schemas: %w", err)
	}
	return &Schemas{kinds, sha256.Sum256(text)}, nil
}

// Of returns the schema of a kind, which permits anything if the kind is unknown.
func (s *Schemas) Of(kind string) definition.Schema { return s.kinds[kind] }

// MarshalJSON implements json.Marshaler.
func (s *Schemas) MarshalJSON() ([]byte, error) { return json.Marshal(s.kinds) }

// UnmarshalJSON implements json.Unmarshaler. The schemas are those that were encoded, with the same digest.
func (s *Schemas) UnmarshalJSON(text []byte) error {
	var kinds map[string]definition.Schema
	if err := json.Unmarshal(text, &kinds); err != nil {
		return fmt.Errorf("decoding the schemas: %w", err)
	}
	decoded, err := newSchemas(kinds)
	if err != nil {
		return err
	}
	*s = *decoded
	return nil
}

// Digest returns the digest of the schemas.
func (s *Schemas) Digest() [sha256.Size]byte { return s.digest }

// Extended returns the schemas with the fields of one kind that another schema of it has in addition, and their number. See definition.Schema.
func (s *Schemas) Extended(kind string, by definition.Schema) (extended *Schemas, added int, err error) {
	base, found := s.kinds[kind]
	if !found {
		return nil, 0, fmt.Errorf("there is no schema of kind %q", kind)
	}
	kinds := maps.Clone(s.kinds)
	if kinds[kind], added, err = base.Extended(by); err != nil {
		return nil, 0, err
	}
	extended, err = newSchemas(kinds)
	return extended, added, err
}

// Input is the schema of the document input when its object is of one of the given kinds, which may have any fields if anyFields is true.
func (s *Schemas) Input(kinds []string, anyFields bool) (map[string]any, error) {
	of := func(kind string) (any, error) {
		if anyFields {
			return map[string]any{}, nil
		}
		return s.resource(kind)
	}
	objects := make([]any, 0, len(kinds))
	for _, kind := range kinds {
		object, err := of(kind)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
		if anyFields {
			break
		}
	}
	object := oneOf(objects)
	instancetype, err := of(Instancetype)
	if err != nil {
		return nil, err
	}
	preference, err := of(Preference)
	if err != nil {
		return nil, err
	}
	return fields(map[string]any{
		"request": fields(map[string]any{
			"operation": text, "kind": text, "requestKind": text, "namespace": text, "name": text, "time": text,
			"dryRun": boolean,
			"userInfo": fields(map[string]any{
				"username": text, "uid": text, "groups": list(text), "extra": anyObject,
			}),
		}),
		"object":    object,
		"oldObject": object,
		"namespace": fields(map[string]any{"name": text, "labels": anyObject, "annotations": anyObject}),
		"template": fields(map[string]any{
			"namespace": text, "name": text, "labels": anyObject, "annotations": anyObject,
			"parameters": list(fields(map[string]any{
				"name": text, "displayName": text, "description": text, "type": text, "value": text,
				"generate": text, "pattern": text, "required": boolean, "sensitive": boolean, "enum": list(text),
			})),
		}),
		"parameters":   anyObject,
		"instancetype": instancetype,
		"preference":   preference,
		"objects":      list(anyObject),
	}), nil
}

// resource is the schema of a kind with the metadata that every object has.
func (s *Schemas) resource(kind string) (map[string]any, error) {
	own, found := s.kinds[kind]
	if !found {
		return nil, fmt.Errorf("there is no schema of kind %q", kind)
	}
	text, err := json.Marshal(own)
	if err != nil {
		return nil, fmt.Errorf("encoding the schema of kind %s: %w", kind, err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, fmt.Errorf("the schema of kind %s: %w", kind, err)
	}
	properties, _ := schema["properties"].(map[string]any)
	if properties == nil {
		return nil, fmt.Errorf("the schema of kind %s has no properties", kind)
	}
	properties["metadata"] = metadata
	return schema, nil
}

var (
	text      = map[string]any{"type": "string"}
	number    = map[string]any{"type": "integer"}
	boolean   = map[string]any{"type": "boolean"}
	anyObject = map[string]any{"type": "object"}
	// metadata are the fields of ObjectMeta that policies receive.
	metadata = fields(map[string]any{
		"name": text, "generateName": text, "namespace": text, "uid": text, "resourceVersion": text,
		"generation": number, "creationTimestamp": text, "deletionTimestamp": text,
		"deletionGracePeriodSeconds": number, "finalizers": list(text),
		"labels": anyObject, "annotations": anyObject, "selfLink": text,
		"ownerReferences": list(fields(map[string]any{
			"apiVersion": text, "kind": text, "name": text, "uid": text,
			"controller": boolean, "blockOwnerDeletion": boolean,
		})),
	})
)

func fields(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": properties}
}

func list(items any) map[string]any {
	return map[string]any{"type": "array", "items": items}
}

func oneOf(alternatives []any) any {
	if len(alternatives) == 1 {
		return alternatives[0]
	}
	return map[string]any{"anyOf": alternatives}
}

// FieldNames returns the names of all fields of inputs by the embedded schemas.
func FieldNames() []string {
	embedded, err := Embedded()
	if err != nil {
		return nil
	}
	input, err := embedded.Input(Kinds(), false)
	if err != nil {
		return nil
	}
	names := map[string]bool{}
	collect(input, names)
	return slices.Sorted(maps.Keys(names))
}

func collect(schema any, names map[string]bool) {
	switch s := schema.(type) {
	case []any:
		for _, part := range s {
			collect(part, names)
		}
	case map[string]any:
		if properties, ok := s["properties"].(map[string]any); ok {
			for name := range properties {
				names[name] = true
				collect(properties[name], names)
			}
		}
		collect(s["items"], names)
		collect(s["anyOf"], names)
	}
}
