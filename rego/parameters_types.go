package rego

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"k8s.io/apimachinery/pkg/util/json"
)

var parametersTerm = ast.StringTerm("parameters")

// unmarshalIntegers decodes JSON as Kubernetes does: whole numbers as int64.
func unmarshalIntegers(text []byte, into *map[string]any) error { return json.Unmarshal(text, into) }

// typesOfData is a module that exists while types are checked: its rules are
// data.parameters, with a value that has the type of the schema if there is one, and
// data.cluster, with a value for each reference, of any type if a ConfigMap has it. OPA takes types of base
// documents from annotations only, which the parser alone can make.
func typesOfData(schema map[string]any, references []Reference) (*ast.Module, error) {
	text := "package types\n"
	if schema != nil {
		text += "\nparameters := " + exemplar(schema, 0) + "\n"
	}
	if len(references) > 0 {
		values := map[string]any{}
		for _, reference := range references {
			values[reference.Name] = reference.schema()
		}
		text += "\ncluster := " + exemplar(map[string]any{"type": "object", "properties": values}, 0) + "\n"
	}
	module, err := ast.ParseModuleWithOpts("", text, ast.ParserOptions{RegoVersion: ast.RegoV1})
	if err != nil {
		return nil, fmt.Errorf("the types of the parameters: %w", err)
	}
	module.Package.Path = ast.Ref{ast.DefaultRootDocument}
	return module, nil
}

// anyValue is undefined, and has any type for the type checker.
const anyValue = `data["any value"]`

// exemplar writes a value of the type that a schema describes. Comprehensions have
// types without a length, and without particular keys.
func exemplar(schema map[string]any, depth int) string {
	if schema["x-kubernetes-preserve-unknown-fields"] == true || schema["x-kubernetes-int-or-string"] == true || schema["nullable"] == true || depth > maxBrackets {
		return anyValue
	}
	switch schema["type"] {
	case "string":
		return `""`
	case "boolean":
		return "true"
	case "integer", "number":
		return "0"
	case "array":
		items, _ := schema["items"].(map[string]any)
		return "[" + exemplar(items, depth+1) + " | true]"
	case "object":
		properties, _ := schema["properties"].(map[string]any)
		additional, open := schema["additionalProperties"].(map[string]any)
		if len(properties) == 0 || open {
			value := anyValue
			if open {
				value = exemplar(additional, depth+1)
			}
			return `{key: ` + value + ` | some key in ["", " "]}`
		}
		fields := make([]string, 0, len(properties))
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			property, _ := properties[name].(map[string]any)
			fields = append(fields, strconv.Quote(name)+": "+exemplar(property, depth+1))
		}
		return "{" + strings.Join(fields, ", ") + "}"
	}
	return anyValue
}

// schemaOf returns the schema of a value: that of parameters without a schema of their own.
func schemaOf(value any) map[string]any {
	switch value := value.(type) {
	case string:
		return map[string]any{"type": "string"}
	case bool:
		return map[string]any{"type": "boolean"}
	case int, int64, float64:
		return map[string]any{"type": "number"}
	case []any:
		items := map[string]any{"x-kubernetes-preserve-unknown-fields": true}
		for i, item := range value {
			described := schemaOf(item)
			if i > 0 && !reflect.DeepEqual(items, described) {
				items = map[string]any{"x-kubernetes-preserve-unknown-fields": true}
				break
			}
			items = described
		}
		return map[string]any{"type": "array", "items": items}
	case map[string]any:
		properties := map[string]any{}
		for name, property := range value {
			properties[name] = schemaOf(property)
		}
		return map[string]any{"type": "object", "properties": properties}
	}
	return map[string]any{"x-kubernetes-preserve-unknown-fields": true}
}
