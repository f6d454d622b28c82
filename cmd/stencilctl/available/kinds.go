package available

import (
	"fmt"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/charts"
)

// definition is what is read of a CustomResourceDefinition.
type definition struct {
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind string `json:"kind"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Schema struct {
				OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

// kinds returns the schema of a manifest of one of Stencil's kinds. Manifests of other kinds satisfy it, because editors apply a schema to files, and a
// file may have several documents.
func kinds() (map[string]any, error) {
	files, err := charts.DefinitionFiles.ReadDir(charts.Definitions)
	if err != nil {
		return nil, fmt.Errorf("reading the definitions: %w", err)
	}
	schemas := map[string]any{}
	var rules []any
	for _, file := range files {
		content, err := charts.DefinitionFiles.ReadFile(path.Join(charts.Definitions, file.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the definitions: %w", err)
		}
		var read definition
		if err := yaml.Unmarshal(content, &read); err != nil {
			return nil, fmt.Errorf("reading definition %s: %w", file.Name(), err)
		}
		for _, version := range read.Spec.Versions {
			name := strings.Join([]string{read.Spec.Group, version.Name, read.Spec.Names.Kind}, ".")
			schemas[name] = plain(version.Schema.OpenAPIV3Schema)
			is := map[string]any{
				"apiVersion": map[string]any{"const": read.Spec.Group + "/" + version.Name},
				"kind":       map[string]any{"const": read.Spec.Names.Kind},
			}
			rules = append(rules, map[string]any{
				"if":   map[string]any{"required": []any{"apiVersion", "kind"}, "properties": is},
				"then": map[string]any{"$ref": "#/$defs/" + name},
			})
		}
	}
	return map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Kinds of Stencil",
		"type":    "object",
		"allOf":   rules,
		"$defs":   schemas,
	}, nil
}

// plain converts the structural schema of a CustomResourceDefinition. An object has no fields but its own, as for the strict validation of kubectl. Rules
// in CEL have no equivalent.
func plain(structural map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range structural {
		if strings.HasPrefix(key, "x-kubernetes-") {
			continue
		}
		switch typed := value.(type) {
		case map[string]any:
			if key == "properties" {
				out[key] = plainEach(typed)
				continue
			}
			if key == "default" {
				out[key] = typed
				continue
			}
			out[key] = plain(typed)
		default:
			out[key] = value
		}
	}
	if structural["x-kubernetes-int-or-string"] == true {
		out["type"] = []any{"integer", "string"}
	}
	// Structural schemas have anyOf and allOf only to repeat what stands beside them.
	_, fields := structural["properties"]
	_, values := structural["additionalProperties"]
	if fields && !values && structural["x-kubernetes-preserve-unknown-fields"] != true {
		out["additionalProperties"] = false
	}
	return out
}

func plainEach(properties map[string]any) map[string]any {
	out := make(map[string]any, len(properties))
	for name, value := range properties {
		schema, _ := value.(map[string]any)
		out[name] = plain(schema)
	}
	return out
}
