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

	"github.com/vmstencil/stencil/rego/schema/definition"
)

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
	text, err := yaml.YAMLToJSON(content)
	if err != nil {
		return err
	}
	var named struct {
		Spec struct{ Names struct{ Kind string } }
	}
	if err := json.Unmarshal(text, &named); err != nil {
		return err
	}
	schema, err := definition.Read(text, "")
	if err != nil {
		return err
	}
	if schema, err = schema.Reduced(); err != nil {
		return err
	}
	if text, err = json.MarshalIndent(schema, "", " "); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(target, named.Spec.Names.Kind+".json"), append(text, '\n'), 0o644)
}
