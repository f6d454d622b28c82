package extensions_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template/extensions"
)

// TestFieldsOfTheTypes lists the fields of the types that are not published, so that a new one is a decision.
func TestFieldsOfTheTypes(t *testing.T) {
	for _, tc := range []struct {
		name      string
		of        reflect.Type
		published []string
		want      []string
	}{
		{
			"the template", reflect.TypeFor[v1beta1.VirtualMachineTemplateSpec](), extensions.PublishedTemplate(),
			[]string{"objectLabels", "objects", "secretize", "undefinedReferences", "syntax"},
		},
		{
			"a parameter", reflect.TypeFor[v1beta1.Parameter](), extensions.PublishedParameter(),
			[]string{"multiline", "type", "pattern", "enum", "minimum", "maximum", "sensitive", "mutable"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var own, published []string
			for field := range tc.of.Fields() {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				if slices.Contains(tc.published, name) {
					published = append(published, name)
				} else {
					own = append(own, name)
				}
			}
			if diff := cmp.Diff(tc.want, own); diff != "" {
				t.Errorf("fields that are not published (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.published, published); diff != "" {
				t.Errorf("published fields in the type (-want +got):\n%s", diff)
			}
		})
	}
}

func object(t *testing.T, text string) *extensions.Object {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	read, err := extensions.Read(raw)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestExtract(t *testing.T) {
	for _, tc := range []struct{ name, spec, want string }{
		{"a published template has none", `{virtualMachine: {spec: {}}, message: m, parameters: [{name: A, value: x, required: true, generate: expression, from: "[a-z]{2}", displayName: a, description: d}]}`, `{}`},
		{"fields of the template and of parameters", `{secretize: true, objects: [{kind: Secret}], parameters: [{name: A, sensitive: true}, {name: B}]}`, `{"template":{"objects":[{"kind":"Secret"}],"secretize":true},"parameters":{"A":{"sensitive":true}}}`},
		{"zero values are none, but the number zero is one", `{secretize: false, objects: [], objectLabels: {}, syntax: "", parameters: [{name: A, sensitive: false, pattern: "", minimum: 0}]}`, `{"parameters":{"A":{"minimum":0}}}`},
		{"integers are exact", `{parameters: [{name: A, maximum: 9223372036854775807}]}`, `{"parameters":{"A":{"maximum":9223372036854775807}}}`},
		{"parameters that are none", `{parameters: [7, null]}`, `{}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// YAML would round the integer.
			raw, err := json.Marshal(extensions.Extract(object(t, "spec: "+tc.spec).Spec))
			if err != nil || string(raw) != tc.want {
				t.Errorf("got %s, %v; want %s", raw, err, tc.want)
			}
		})
	}
}

func TestReadRejectsWhatIsNoTemplate(t *testing.T) {
	if _, err := extensions.Read([]byte(`{"spec":7}`)); err == nil || !strings.HasPrefix(err.Error(), "decoding the template: ") {
		t.Errorf("got %v", err)
	}
}

func TestAMessageNamesFieldsWithoutValues(t *testing.T) {
	e := extensions.Extract(object(t, `spec: {objects: [{stringData: {a: hunter2}}], secretize: true, parameters: [{name: PASSWORD, sensitive: true, enum: [hunter2], pattern: hunter., type: string, multiline: true}]}`).Spec)
	const want = "spec.objects, spec.secretize, spec.parameters[PASSWORD].enum, spec.parameters[PASSWORD].multiline, spec.parameters[PASSWORD].pattern, spec.parameters[PASSWORD].sensitive and 1 more"
	if got := e.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestInto(t *testing.T) {
	spec := object(t, `spec: {message: m, parameters: [7, {name: A, value: x}, {name: B}]}`).Spec
	extensions.Extract(object(t, `spec: {secretize: true, parameters: [{name: A, type: int}, {name: C, type: int}]}`).Spec).Into(spec)
	if diff := cmp.Diff(object(t, `spec: {message: m, secretize: true, parameters: [7, {name: A, value: x, type: int}, {name: B}]}`).Spec, spec); diff != "" {
		t.Errorf("specification (-want +got):\n%s", diff)
	}
}
