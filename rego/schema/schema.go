// Package schema holds the schemas of the input of policies, in the kind of JSON Schema that Rego's type checker supports.
//
// The files are generated from the CustomResourceDefinitions of KubeVirt and of Stencil; see hack/generate.sh. A policy that reads a field that is
// not in them, and so not in KubeVirt's API, is rejected.
package schema

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

//go:embed files/*.json
var files embed.FS

// Kinds are the kinds of objects that there are schemas of.
func Kinds() []string {
	return []string{"VirtualMachine", "VirtualMachineTemplate", "VirtualMachineTemplateRequest", "VirtualMachineTemplateImport", "VirtualMachineTemplateExport"}
}

// Input is the schema of the document input when its object is of one of the
// given kinds.
func Input(kinds []string) (map[string]any, error) {
	objects := make([]any, 0, len(kinds))
	for _, kind := range kinds {
		object, err := resource(kind)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	object := oneOf(objects)
	instancetype, err := resource("VirtualMachineInstancetype")
	if err != nil {
		return nil, err
	}
	preference, err := resource("VirtualMachinePreference")
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
func resource(kind string) (map[string]any, error) {
	content, err := files.ReadFile("files/" + kind + ".json")
	if err != nil {
		return nil, fmt.Errorf("there is no schema of kind %q", kind)
	}
	var schema map[string]any
	if err := json.Unmarshal(content, &schema); err != nil {
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

// FieldNames returns the names of all fields of inputs.
func FieldNames() []string {
	input, err := Input(Kinds())
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
