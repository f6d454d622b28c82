package template_test

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

func TestCompiledDescribesItsTemplate(t *testing.T) {
	compiled := compileFile(t, "fedora.yaml")

	if got, want := compiled.NamePattern(), "${NAME}"; got != want {
		t.Errorf("NamePattern: got %q, want %q", got, want)
	}
	for name, want := range map[string]bool{"CLOUD_USER_PASSWORD": true, "NAME": false, "OTHER": false} {
		if got := compiled.Sensitive(name); got != want {
			t.Errorf("Sensitive(%q): got %v, want %v", name, got, want)
		}
	}
	parameters := compiled.Parameters()
	if diff := cmp.Diff(readTemplate(t, "fedora.yaml").Spec.Parameters, parameters); diff != "" {
		t.Errorf("Parameters (-want +got):\n%s", diff)
	}
	parameters[0].Name = "CHANGED"
	if got := compiled.Parameters()[0].Name; got != "NAME" {
		t.Errorf("Parameters: a caller's change reached the compiled template: %q", got)
	}
	if unused := compiled.Unused(); unused != nil {
		t.Errorf("Unused: got %q, want none", unused)
	}
	if warnings := compiled.Warnings(); len(warnings) != 0 {
		t.Errorf("Warnings: got %q, want none", warnings)
	}
}

func TestUnusedNamesWhatNothingRefersTo(t *testing.T) {
	compiled := compile(t, `
message: ${MESSAGE}
objectLabels: {a: "${LABEL}"}
parameters: [{name: MESSAGE}, {name: LABEL}, {name: KEY}, {name: TEXT}, {name: WHOLE}, {name: ESCAPED}, {name: NONE}]
virtualMachine: {metadata: {labels: {"${KEY}": "x${TEXT}"}}, spec: {running: "${{WHOLE}}", runStrategy: "$${ESCAPED}"}}
`)
	if diff := cmp.Diff([]string{"ESCAPED", "NONE"}, compiled.Unused()); diff != "" {
		t.Errorf("Unused (-want +got):\n%s", diff)
	}
}

func TestDigest(t *testing.T) {
	digest := func(spec string) string { return compile(t, spec).Digest() }
	const base = `{message: hi, parameters: [{name: A, value: x}], virtualMachine: {metadata: {name: "${A}", labels: {a: b}}}}`

	canonical := `{"message":"hi","parameters":[{"name":"A","value":"x"}],"virtualMachine":{"metadata":{"labels":{"a":"b"},"name":"${A}"}}}`
	if got, want := digest(base), fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(canonical))); got != want {
		t.Errorf("got %q, want the digest of the canonical JSON, %q", got, want)
	}
	for name, tc := range map[string]struct {
		spec string
		same bool
	}{
		"the order of keys does not matter": {
			spec: `{virtualMachine: {metadata: {labels: {a: b}, name: "${A}"}}, parameters: [{value: x, name: A}], message: hi}`, same: true,
		},
		"a field that says what is so anyway does not matter": {
			spec: `{message: hi, parameters: [{name: A, value: x, required: false}], virtualMachine: {metadata: {name: "${A}", labels: {a: b}}}}`, same: true,
		},
		"the message matters":      {spec: strings.Replace(base, "message: hi", "message: ho", 1)},
		"a default matters":        {spec: strings.Replace(base, "value: x", "value: z", 1)},
		"a label matters":          {spec: strings.Replace(base, "a: b", "a: c", 1)},
		"a dropped field matters":  {spec: strings.Replace(base, "labels:", "namespace: x, labels:", 1)},
		"a policy matters":         {spec: strings.Replace(base, "message: hi", "message: hi, undefinedReferences: Keep", 1)},
		"an object label matters":  {spec: strings.Replace(base, "message: hi", "message: hi, objectLabels: {c: d}", 1)},
		"a type matters":           {spec: strings.Replace(base, "value: x", "value: x, type: string", 1)},
		"a description matters":    {spec: strings.Replace(base, "value: x", "value: x, description: d", 1)},
		"sensitivity matters":      {spec: strings.Replace(base, "value: x", "value: x, sensitive: true", 1)},
		"a null in the VM matters": {spec: strings.Replace(base, "labels:", "annotations: null, labels:", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			if same := digest(tc.spec) == digest(base); same != tc.same {
				t.Errorf("same digest: got %v, want %v", same, tc.same)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"a hardcoded namespace": {
			spec: `{virtualMachine: {metadata: {namespace: elsewhere}}}`,
			want: []string{`spec.virtualMachine.metadata.namespace: is dropped: a VirtualMachine is created in the namespace of the request, unless its namespace is a parameter`},
		},
		"metadata that is not carried over": {
			spec: `{virtualMachine: {metadata: {generation: 4}}}`,
			want: []string{`spec.virtualMachine.metadata.generation: is dropped: of metadata a template holds only annotations, generateName, labels, name and namespace`},
		},
		"a whole value in the midst of a text": {
			spec: `{parameters: [{name: A}], virtualMachine: {metadata: {name: "x${{A}}", labels: {b: "${A}${{B}}"}}}}`,
			want: []string{`spec.virtualMachine.metadata.name: ${{A}} stays as it is, because it is not the whole value; ${A} inserts the value into a text`},
		},
		"a kept reference that may be a misspelling": {
			spec: `{undefinedReferences: Keep, parameters: [{name: PASSWORD}], virtualMachine: {metadata: {name: "${PASSWORT}${HOME}"}}}`,
			want: []string{`spec.virtualMachine.metadata.name: ${PASSWORT} stays as it is, because no parameter is called PASSWORT; did you mean PASSWORD?`},
		},
		"a default for a sensitive parameter": {
			spec: `{parameters: [{name: A, value: hunter2, sensitive: true}], virtualMachine: {}}`,
			want: []string{`spec.parameters[0].value: the default of the sensitive parameter A can be read by everyone who can read the template`},
		},
		"a sensitive parameter in metadata": {
			spec: `{parameters: [{name: A, sensitive: true}], virtualMachine: {metadata: {annotations: {"${A}": "x${A}"}}}}`,
			want: []string{
				`spec.virtualMachine.metadata.annotations: a key shows a sensitive parameter to everyone who can see the VirtualMachine's metadata`,
				`spec.virtualMachine.metadata.annotations[${A}]: shows the sensitive parameter A to everyone who can see the VirtualMachine's metadata`,
			},
		},
		"a name that no annotation can have": {
			spec: `{parameters: [{name: _A}], virtualMachine: {}}`,
			want: []string{`spec.parameters[0].name: no annotation can give a value to _A: Kubernetes allows at most 63 characters that begin and end with a letter or digit`},
		},
		"a name that no reference can have, and another apiVersion": {
			spec: `{parameters: [{name: MY-NAME, value: x}], virtualMachine: {apiVersion: kubevirt.io/v1alpha3, metadata: {labels: {a: "${MY-NAME}"}}}}`,
			want: []string{
				`spec.parameters[0].name: nothing can refer to MY-NAME: references consist of letters, digits and underscores`,
				`spec.virtualMachine.apiVersion: has no effect: VirtualMachines are rendered in kubevirt.io/v1`,
			},
		},
		"a generator beside a default, and what a generator works from without one": {
			spec: `{parameters: [{name: A, value: x, generate: expression, from: "[a]{1}"}, {name: B, from: "[a]{1}"}], virtualMachine: {}}`,
			want: []string{
				`spec.parameters[0].generate: has no effect beside value`,
				`spec.parameters[1].from: has no effect without generate`,
			},
		},
		"characters of an expression that stand for nothing": {
			spec: `{parameters: [{name: A, generate: expression, from: "[a-z-]{4}"}], virtualMachine: {}}`,
			want: []string{`spec.parameters[0].from: these characters between brackets stand for nothing: -`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, compile(t, tc.spec).Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParametersAreReturnedAsTheyWereDeclared(t *testing.T) {
	least, most := int64(1), int64(9)
	declared := []v1beta1.Parameter{
		{Name: "PLAIN", Mutable: true},
		{Name: "SIZE", DisplayName: "Size", Description: "in GiB", Value: "4", Required: true, Type: v1beta1.ParameterTypeInt, Pattern: "[0-9]+", Enum: []string{"4", "8"}, Minimum: &least, Maximum: &most},
		{Name: "TEXT", Description: "many lines", Multiline: true, Sensitive: true},
		{Name: "DRAWN", Generate: v1beta1.GeneratorExpression, From: "a-[a-z]{4}"},
	}
	// Otherwise a new field of the API could be missing in the form in which parameters are stored.
	all := reflect.TypeFor[v1beta1.Parameter]()
	for i := range all.NumField() {
		if !slices.ContainsFunc(declared, func(p v1beta1.Parameter) bool { return !reflect.ValueOf(p).Field(i).IsZero() }) {
			t.Errorf("no parameter of this test has a %s", all.Field(i).Name)
		}
	}
	compiled, err := template.Compile(&v1beta1.VirtualMachineTemplate{Spec: v1beta1.VirtualMachineTemplateSpec{
		Parameters:     declared,
		VirtualMachine: &runtime.RawExtension{Raw: []byte(`{"spec":{"runStrategy":"Halted","template":{"spec":{"domain":{"devices":{}}}}}}`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := compiled.Parameters()
	if diff := cmp.Diff(declared, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got[1].Enum[0], *got[1].Minimum = "changed", 7
	if diff := cmp.Diff(declared, compiled.Parameters()); diff != "" {
		t.Errorf("a reader has changed them (-want +got):\n%s", diff)
	}
}
