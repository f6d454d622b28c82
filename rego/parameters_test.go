package rego

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func fromYAML(t testing.TB, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	var value map[string]any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

const limitSchema = `
type: object
required: [max]
properties:
  max: {type: integer, minimum: 1}
  names: {type: array, items: {type: string, pattern: "^[a-z]+$"}}
  mode: {type: string, enum: [soft, hard], default: soft}
  labels: {type: object, additionalProperties: {type: string}}
  anything: {x-kubernetes-preserve-unknown-fields: true}
`

func TestParametersAreChecked(t *testing.T) {
	const source = "package p\n\ndeny contains data.parameters.mode if true\n"
	for name, tc := range map[string]struct{ schema, parameters, want string }{
		"they satisfy the schema":               {limitSchema, "{max: 2, names: [a], labels: {x: z}, anything: {a: 1}}", ""},
		"they are not described":                {"", "{mode: hard, whatever: [1]}", ""},
		"one that is read is not set":           {"", "{whatever: [1]}", `3:31: unknown field: data.parameters has no "mode"`},
		"there are none, and one is read":       {"", "{}", `3:31: data.parameters has no "mode": the policy has neither parameters nor parametersSchema`},
		"it is not known whether there are any": {"", "", ""},
		"one is missing":                        {limitSchema, "{}", "parameters.max: Required value"},
		"there are none":                        {limitSchema, "", "parameters.max: Required value"},
		"one has another type":                  {limitSchema, `{max: "2"}`, `parameters.max: Invalid value: "string": max in body must be of type integer: "string"`},
		"one is too small":                      {limitSchema, "{max: 0}", "parameters.max: Invalid value: 0: max in body should be greater than or equal to 1"},
		"an element does not match":             {limitSchema, "{max: 1, names: [a, B]}", `parameters.names[1]: Invalid value: "B": names[1] in body should match '^[a-z]+$'`},
		"one is not among the values":           {limitSchema, "{max: 1, mode: medium}", `parameters.mode: Unsupported value: "medium": supported values: "soft", "hard"`},
		"one is not in the schema":              {limitSchema, "{max: 1, maxx: 2}", "parameters.maxx: unknown field: parametersSchema does not have it"},
		"several are wrong":                     {limitSchema, "{maxx: 2, mode: x}", "parameters.maxx: unknown field: parametersSchema does not have it\nparameters.mode: Unsupported value: \"x\": supported values: \"soft\", \"hard\"\nparameters.max: Required value"},
		"the schema has no types":               {"{type: object, properties: {mode: {}}}", "{}", "parametersSchema.properties[mode].type: Required value: must not be empty for specified object fields"},
		"the schema is not of an object":        {"{type: string}", "{}", `parametersSchema: the type must be "object"`},
		"the schema refers elsewhere":           {"{type: object, properties: {mode: {$ref: 'http://x/y'}}}", "{}", "parametersSchema: OpenAPIV3Schema '$ref' is not supported"},
		"the schema has CEL":                    {"{type: object, x-kubernetes-validations: [{rule: 'true'}], properties: {mode: {type: string}}}", "{}", "parametersSchema: x-kubernetes-validations are not evaluated here; write the rule in Rego"},
		"the schema is no schema":               {"{type: [object]}", "{}", "parametersSchema: json: cannot unmarshal array into Go struct field JSONSchemaProps.type of type string"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := testCompiler.Compile(context.Background(), Definition{Source: source, Schema: fromYAML(t, tc.schema), Parameters: fromYAML(t, tc.parameters)})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParametersAreTyped(t *testing.T) {
	for name, tc := range map[string]struct{ source, want string }{
		"a field of the schema":        {"data.parameters.max > 1", ""},
		"an element":                   {"data.parameters.names[_] == \"a\"", ""},
		"a free key":                   {"data.parameters.labels[\"a.b/c\"] == \"a\"", ""},
		"anything":                     {"data.parameters.anything.at.all[3] == 1", ""},
		"an unknown field":             {"data.parameters.maxx > 1", "3:38: unknown field: data.parameters has no \"maxx\"; did you mean max?"},
		"an element of another type":   {"data.parameters.names[_] == 1", "3:22: match error: string and number are never equal"},
		"a free value of another type": {"data.parameters.labels.x == 1", "3:22: match error: string and number are never equal"},
		"a field of a text":            {"data.parameters.mode.x", "3:43: data.parameters.mode has no fields: it is a string"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := testCompiler.Compile(context.Background(), Definition{
				Source: "package p\n\ndeny contains \"x\" if " + tc.source + "\n", Schema: fromYAML(t, limitSchema), Parameters: map[string]any{"max": 1},
			})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestDefaultsOfTheSchemaAreParameters(t *testing.T) {
	policy := mustCompile(t, Definition{
		Source: "package p\n\ndeny contains data.parameters.mode if true\n", Schema: fromYAML(t, limitSchema), Parameters: map[string]any{"max": 1},
	})
	got, err := policy.Evaluate(context.Background(), mustInput(t, vmDocument(t)))
	if diff := cmp.Diff(Result{Deny: found("soft")}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestWithParameters(t *testing.T) {
	first := mustCompile(t, Definition{
		Source: "package p\n\ndeny contains sprintf(\"%d\", [data.parameters.max]) if true\n", Schema: fromYAML(t, limitSchema), Parameters: map[string]any{"max": 1},
	})
	second, err := first.WithParameters(map[string]any{"max": 2})
	if err != nil {
		t.Fatal(err)
	}
	if first.Digest() == second.Digest() {
		t.Error("the digest is the same")
	}
	in := mustInput(t, vmDocument(t))
	for policy, want := range map[*Policy]string{first: "1", second: "2"} {
		got, err := policy.Evaluate(context.Background(), in)
		if diff := cmp.Diff(Result{Deny: found(want)}, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
	if _, err := first.WithParameters(map[string]any{"max": 0}); err == nil || !strings.Contains(err.Error(), "parameters.max") {
		t.Errorf("wrong parameters: %v", err)
	}
}
