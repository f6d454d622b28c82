package library

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/testfile"
)

var update = flag.Bool("update", false, "write what is made from the policies: the chart's copies, its values and their schema, docs/policies/library.md")

// about is the description of a policy in its METADATA.
type about struct {
	title, description, severity string
	parameters                   []parameter
}

// parameter is one property of a parametersSchema.
type parameter struct {
	name, description, fallback string
	schema                      map[string]any
}

func describe(t testing.TB, policy *v1alpha1.VirtualMachinePolicy) about {
	t.Helper()
	module, err := ast.ParseModuleWithOpts(policy.Name, policy.Spec.Rego, ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
	if err != nil {
		t.Fatal(err)
	}
	var a about
	for _, annotation := range module.Annotations {
		if annotation.Scope != "package" {
			continue
		}
		a.title, a.description = annotation.Title, strings.TrimSpace(annotation.Description)
		a.severity, _ = annotation.Custom["severity"].(string)
	}
	var schema struct {
		Properties map[string]map[string]any
	}
	decode(t, policy.Spec.ParametersSchema.Raw, &schema)
	for name, property := range schema.Properties {
		one := parameter{name: name, schema: property}
		one.description, _ = property["description"].(string)
		if fallback, found := property["default"]; found {
			one.fallback = encode(t, fallback)
		}
		a.parameters = append(a.parameters, one)
	}
	slices.SortFunc(a.parameters, func(x, y parameter) int { return strings.Compare(x.name, y.name) })
	return a
}

func decode(t testing.TB, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

func encode(t testing.TB, value any) string {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(text.String())
}

// generated is a file that is made from the policies, or the part of it between two texts.
func generated(path, begin, end string) testfile.Generated {
	return testfile.Generated{Path: path, Begin: begin, End: end, Update: *update, Command: "go test ./policies/library -update"}
}

const chart = "../../charts/stencil"

func TestTheValuesOfTheChartHaveEveryPolicy(t *testing.T) {
	var text strings.Builder
	for _, policy := range policies(t) {
		about := describe(t, policy)
		first, _, _ := strings.Cut(about.description, ". ")
		fmt.Fprintf(&text, "    # %s (%s). %s. Parameters: %s.\n", about.title, about.severity, strings.TrimSuffix(first, "."), parameterNames(about))
		fmt.Fprintf(&text, "    %s:\n      enabled: false\n", policy.Name)
	}
	generated(filepath.Join(chart, "values.yaml"), "  library:\n", "  # The end of the library.").Compare(t, text.String())
}

func parameterNames(a about) string {
	names := make([]string, len(a.parameters))
	for i, parameter := range a.parameters {
		names[i] = fmt.Sprintf("`%s` (`%s`)", parameter.name, parameter.fallback)
	}
	return strings.Join(names, ", ")
}

func TestTheSchemaOfTheChartKnowsEveryParameter(t *testing.T) {
	properties := map[string]any{}
	for _, policy := range policies(t) {
		var schema map[string]any
		decode(t, policy.Spec.ParametersSchema.Raw, &schema)
		// Parameters that are not set are those of the policy.
		delete(schema, "required")
		closed(schema)
		properties[policy.Name] = map[string]any{
			"allOf": []any{map[string]any{"$ref": "#/definitions/libraryPolicy"}},
			"properties": map[string]any{
				"parameters": schema,
			},
		}
	}
	raw, err := json.MarshalIndent(properties, "        ", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = `          "$comment": "The properties are generated from policies/library.",` + "\n" + `          "properties": `, `,` + "\n" + `          "additionalProperties": false`
	generated(filepath.Join(chart, "values.schema.json"), begin, end).Compare(t, strings.ReplaceAll(string(raw), "\n        ", "\n          "))
}

// closed makes a schema reject unknown fields, as the admission of policies does.
func closed(schema map[string]any) {
	if properties, found := schema["properties"].(map[string]any); found {
		schema["additionalProperties"] = false
		for _, property := range properties {
			closed(property.(map[string]any))
		}
	}
	for _, inside := range []string{"items", "additionalProperties"} {
		if inner, found := schema[inside].(map[string]any); found {
			closed(inner)
		}
	}
}

func TestTheReferenceOfTheLibrary(t *testing.T) {
	var contents, sections strings.Builder
	for _, policy := range policies(t) {
		about := describe(t, policy)
		fmt.Fprintf(&contents, "| [%s](#%s) | %s | %s |\n", policy.Name, policy.Name, about.severity, about.title)
		fmt.Fprintf(&sections, "\n## %s\n\n%s: severity %s. [Source and tests](../../charts/stencil/files/library/%s.yaml)\n\n%s\n", policy.Name, about.title, about.severity, policy.Name, about.description)
		fmt.Fprintf(&sections, "\n%s\n", applies(policy))
		sections.WriteString("\n| Parameter | Type | Default | Meaning |\n|---|---|---|---|\n")
		for _, parameter := range about.parameters {
			rows(&sections, t, parameter.name, parameter.schema)
		}
		fmt.Fprintf(&sections, "\nIt reports, for example: `%s`\n", example(t, policy))
	}
	generated("../../docs/policies/library.md", "<!-- library:begin -->\n", "<!-- library:end -->").Compare(t,
		"\n| Policy | Severity | Title |\n|---|---|---|\n"+contents.String()+sections.String()+"\n")
}

// applies describes which requests a policy evaluates.
func applies(policy *v1alpha1.VirtualMachinePolicy) string {
	operations, kinds := []string{"CREATE", "UPDATE"}, []string{"VirtualMachine"}
	if match := policy.Spec.Match; len(match.Operations) > 0 {
		operations = nil
		for _, operation := range match.Operations {
			operations = append(operations, string(operation))
		}
	}
	if match := policy.Spec.Match; len(match.Kinds) > 0 {
		kinds = nil
		for _, kind := range match.Kinds {
			kinds = append(kinds, string(kind))
		}
	}
	return fmt.Sprintf("Judges %s of %s.", strings.Join(operations, " and "), strings.Join(kinds, " and "))
}

// rows describes a parameter and its fields.
func rows(text *strings.Builder, t *testing.T, path string, schema map[string]any) {
	fallback, kind := "", schemaType(schema)
	if value, found := schema["default"]; found {
		fallback = "`" + encode(t, value) + "`"
	}
	description, _ := schema["description"].(string)
	fmt.Fprintf(text, "| `%s` | %s | %s | %s |\n", path, kind, fallback, strings.ReplaceAll(strings.TrimSpace(description), "|", "\\|"))
	if items, found := schema["items"].(map[string]any); found {
		properties(text, t, path+"[]", items)
	}
	if additional, found := schema["additionalProperties"].(map[string]any); found {
		properties(text, t, path+".*", additional)
	}
	properties(text, t, path, schema)
}

func properties(text *strings.Builder, t *testing.T, path string, schema map[string]any) {
	all, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		rows(text, t, path+"."+name, all[name].(map[string]any))
	}
}

func schemaType(schema map[string]any) string {
	kind, _ := schema["type"].(string)
	if values, found := schema["enum"].([]any); found {
		texts := make([]string, len(values))
		for i, value := range values {
			texts[i] = fmt.Sprintf("`%v`", value)
		}
		return strings.Join(texts, ", ")
	}
	if items, found := schema["items"].(map[string]any); found {
		return "array of " + schemaType(items)
	}
	if additional, found := schema["additionalProperties"].(map[string]any); found {
		return "object of " + schemaType(additional)
	}
	return kind
}

// example returns a message of the policy: the first that its tests expect.
func example(t *testing.T, policy *v1alpha1.VirtualMachinePolicy) string {
	t.Helper()
	for _, test := range policy.Spec.Tests {
		if messages := slices.Concat(test.Deny, test.Warn); len(messages) > 0 {
			return messages[0]
		}
	}
	t.Fatalf("%s has no test that finds something", policy.Name)
	return ""
}
