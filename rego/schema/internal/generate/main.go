// Command generate writes the schemas of the input of policies, from the CustomResourceDefinitions of the same kinds. hack/generate.sh runs it.
//
//	generate TARGET CRD [CRD]
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// definition is the part of a CustomResourceDefinition that is read.
type definition struct {
	Spec struct {
		Names    struct{ Kind string }
		Versions []struct {
			Name    string
			Storage bool
			Schema  struct{ OpenAPIV3Schema schema }
		}
	}
}

// schema is the part of a structural schema that defines fields and their types; the API server validates values.
type schema struct {
	Type       string            `json:"type,omitempty"`
	Properties map[string]schema `json:"properties,omitempty"`
	Items      *schema           `json:"items,omitempty"`
	Additional *json.RawMessage  `json:"additionalProperties,omitempty"`
	Preserve   bool              `json:"x-kubernetes-preserve-unknown-fields,omitempty"`
	IntOrText  bool              `json:"x-kubernetes-int-or-string,omitempty"`
	Embedded   bool              `json:"x-kubernetes-embedded-resource,omitempty"`
	AnyOf      []schema          `json:"anyOf,omitempty"`
}

// intOrText is the schema of quantities.
var intOrText = schema{AnyOf: []schema{{Type: "number"}, {Type: "string"}}}

// reduced returns the schema without the parts that the type checker does not use. A value without a schema may be anything.
func (s schema) reduced() schema {
	if s.Preserve || s.Embedded {
		return schema{}
	}
	if s.IntOrText {
		return intOrText
	}
	result := schema{Type: s.Type}
	if len(s.Properties) > 0 {
		result.Properties = map[string]schema{}
		for name, property := range s.Properties {
			result.Properties[name] = property.reduced()
		}
	}
	if s.Items != nil {
		items := s.Items.reduced()
		result.Items = &items
	}
	return result
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) < 2 {
		return errors.New("usage: generate TARGET CRD [CRD]")
	}
	for _, source := range arguments[1:] {
		if err := write(arguments[0], source); err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
	}
	return nil
}

func write(target, source string) error {
	content, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	var crd definition
	if err := yaml.Unmarshal(content, &crd); err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		if !version.Storage {
			continue
		}
		text, err := json.MarshalIndent(version.Schema.OpenAPIV3Schema.reduced(), "", " ")
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(target, crd.Spec.Names.Kind+".json"), append(text, '\n'), 0o644)
	}
	return errors.New("no version is stored")
}
