package available

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := kinds()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("stencil.schema.json", document); err != nil {
		t.Fatal(err)
	}
	// It checks the schema against the draft.
	found, err := compiler.Compile("stencil.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// documents calls visit with each document of a stream of YAML.
func documents(t *testing.T, text string, visit func(document any)) {
	t.Helper()
	reader := yamlstream.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		var raw json.RawMessage
		if err := reader.Decode(&raw); err != nil {
			return
		}
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		visit(document)
	}
}

// The examples of the documentation, which the API server accepts, satisfy the schema.
func TestTheExamplesSatisfyTheSchemaOfKinds(t *testing.T) {
	schema := compiled(t)
	seen := map[string]int{}
	err := filepath.WalkDir("../../../docs/examples", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)) {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		documents(t, string(content), func(document any) {
			if object, is := document.(map[string]any); is {
				kind, _ := object["kind"].(string)
				seen[kind]++
			}
			if err := schema.Validate(document); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"VirtualMachineTemplate", "TemplateApproval", "VirtualMachinePolicy"} {
		if seen[kind] == 0 {
			t.Errorf("no example is a %s", kind)
		}
	}
}

func TestTheSchemaOfKindsFindsMistakes(t *testing.T) {
	schema := compiled(t)
	const template, approval = "apiVersion: template.kubevirt.io/v1beta1\nkind: VirtualMachineTemplate\nmetadata: {name: a}\n", "apiVersion: stencil.kubevirt.io/v1alpha1\nkind: TemplateApproval\nmetadata: {name: a}\n"
	for _, tc := range []struct{ name, text, want string }{
		{name: "a template", text: template + "spec: {virtualMachine: {anything: {goes: here}}, parameters: [{name: A, minimum: 1, type: int}]}"},
		{name: "the older version", text: strings.Replace(template, "v1beta1", "v1alpha1", 1) + "spec: {virtualMachine: {}}"},
		{name: "a request", text: "apiVersion: template.kubevirt.io/v1beta1\nkind: VirtualMachineTemplateRequest\nmetadata: {name: a}\nspec: {virtualMachineRef: {namespace: a, name: b}, templateName: c}"},
		{name: "a golden image", text: "apiVersion: stencil.kubevirt.io/v1alpha1\nkind: GoldenImage\nmetadata: {name: a}\nspec: {source: {registry: {url: docker://quay.io/a/b, tag: '42'}}, storage: {size: 30Gi}}"},
		{name: "a golden image with a number for a size", text: "apiVersion: stencil.kubevirt.io/v1alpha1\nkind: GoldenImage\nmetadata: {name: a}\nspec: {source: {registry: {url: docker://quay.io/a/b, tag: '42'}}, storage: {size: 1.5}}", want: "got number, want integer or string"},
		{name: "another kind", text: "apiVersion: v1\nkind: Secret\nstringData: {a: b}"},
		{name: "a misspelled field", text: template + "spec: {virtualMachine: {}, paramters: []}", want: "additional properties 'paramters' not allowed"},
		{name: "a misspelled field of a parameter", text: template + "spec: {virtualMachine: {}, parameters: [{name: A, defalt: a}]}", want: "additional properties 'defalt' not allowed"},
		{name: "a missing field", text: template + "spec: {parameters: []}", want: "missing property 'virtualMachine'"},
		{name: "a wrong type", text: template + "spec: {virtualMachine: {}, parameters: [{name: A, value: 1}]}", want: "got number, want string"},
		{name: "a value that is not listed", text: approval + "spec: {namespaces: [a], templates: [{namespace: b, name: c}], enforcement: Maybe}", want: "value must be one of 'Deny', 'Warn', 'Audit'"},
		{name: "labels have any keys", text: "apiVersion: stencil.kubevirt.io/v1alpha1\nkind: TemplateApproval\nmetadata: {name: a, labels: {a: b}}\nspec: {namespaceSelector: {matchLabels: {a: b}}, templates: [{namespace: b, selector: {}}]}"},
		{name: "no empty list", text: approval + "spec: {namespaces: [a], templates: []}", want: "minItems: got 0, want 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			documents(t, tc.text, func(document any) {
				err := schema.Validate(document)
				if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}
