package template_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/template"
)

// vmOf reads a VirtualMachine from YAML. Its numbers retain their digits.
func vmOf(tb testing.TB, document string) map[string]any {
	tb.Helper()
	encoded, err := yaml.YAMLToJSONStrict([]byte(document))
	if err != nil {
		tb.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var vm map[string]any
	if err := decoder.Decode(&vm); err != nil {
		tb.Fatal(err)
	}
	return vm
}

// match compares a VirtualMachine with the spec of a template, both in YAML.
func match(tb testing.TB, spec, vm string, options ...template.MatchOption) *template.Match {
	tb.Helper()
	return matched(tb, compile(tb, spec), vmOf(tb, vm), options...)
}

// differences returns the differences as text, one a line.
func differences(found *template.Match) []string {
	var all []string
	for _, d := range found.Differences() {
		all = append(all, fmt.Sprintf("%s: want %s, got %s", d.Path, d.Want, d.Got))
	}
	return all
}

// matchCase is a comparison and its expected result. The values are not compared if there are differences.
type matchCase struct {
	spec, vm        string
	wantValues      map[string]string
	wantDifferences []string
}

func testMatch(t *testing.T, cases map[string]matchCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found := match(t, tc.spec, tc.vm)
			if diff := cmp.Diff(tc.wantDifferences, differences(found)); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			if found.Matches() != (tc.wantDifferences == nil) {
				t.Errorf("Matches: got %v", found.Matches())
			}
			if tc.wantDifferences != nil {
				return
			}
			if tc.wantValues == nil {
				tc.wantValues = map[string]string{}
			}
			if diff := cmp.Diff(tc.wantValues, found.Values()); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMatchReadsTexts(t *testing.T) {
	testMatch(t, map[string]matchCase{
		"a placeholder that is the whole text takes it all": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "${A}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "a ${A} b"}}}}`,
			wantValues: map[string]string{"A": "a ${A} b"},
		},
		"text around a placeholder is not part of the value": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "x-${A}-y"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "x-x--y-y"}}}}`,
			wantValues: map[string]string{"A": "x--y"},
		},
		"a value may be empty when the parameter is optional": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "x${A}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "x"}}}}`,
			wantValues: map[string]string{"A": ""},
		},
		"other text is a difference": {
			spec:            `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "x-${A}-y"}}}}}`,
			vm:              `{spec: {template: {spec: {hostname: "x-y"}}}}`,
			wantDifferences: []string{`spec.template.spec.hostname: want "x-${A}-y", got "x-y"`},
		},
		"a parameter that occurs twice in one text has one value": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "${A}-${A}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "a-b-a-b"}}}}`,
			wantValues: map[string]string{"A": "a-b"},
		},
		"a parameter that occurs twice in one text with two values is a difference": {
			spec:            `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "${A}-${A}"}}}}}`,
			vm:              `{spec: {template: {spec: {hostname: "ab-ac"}}}}`,
			wantDifferences: []string{`spec.template.spec.hostname: want "${A}-${A}", got "ab-ac"`},
		},
		"a parameter that occurs in two places has one value": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "${A}", subdomain: "x${A}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: a, subdomain: xa}}}}`,
			wantValues: map[string]string{"A": "a"},
		},
		"the second place with another value is a difference": {
			spec:            `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "${A}", subdomain: "x${A}"}}}}}`,
			vm:              `{spec: {template: {spec: {hostname: a, subdomain: xb}}}}`,
			wantDifferences: []string{`spec.template.spec.subdomain: want "xa", got "xb"`},
		},
		"placeholders side by side take as little as they can from left to right": {
			spec:       `{parameters: [{name: A}, {name: B}, {name: C}], virtualMachine: {spec: {template: {spec: {hostname: "${A}${B}-${C}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "éabc-d-e"}}}}`,
			wantValues: map[string]string{"A": "é", "B": "abc", "C": "d-e"},
		},
		"a value that shows alone elsewhere says where the others begin": {
			spec:       `{parameters: [{name: A}, {name: B}], virtualMachine: {spec: {template: {spec: {hostname: "${A}-${B}", subdomain: "${A}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "a-b-c", subdomain: a-b}}}}`,
			wantValues: map[string]string{"A": "a-b", "B": "c"},
		},
		"values that show only beside each other are found together": {
			spec:       `{parameters: [{name: A}, {name: B}], virtualMachine: {spec: {template: {spec: {hostname: "${A}-${B}", subdomain: "${A}.${B}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "a-b-c-d", subdomain: "a-b-c.d"}}}}`,
			wantValues: map[string]string{"A": "a-b-c", "B": "d"},
		},
		"what the declarations take says where the values end": {
			spec: `{parameters: [{name: A}, {name: B, generate: expression, from: "[a-z]{3}"}, {name: C, type: int}],
				virtualMachine: {spec: {template: {spec: {hostname: "${A}-${B}${C}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "web-one-abc17"}}}}`,
			wantValues: map[string]string{"A": "web-one", "B": "abc", "C": "17"},
		},
		"texts that cannot agree are a difference where the second contradicts the first": {
			spec:            `{parameters: [{name: A}, {name: B}], virtualMachine: {spec: {template: {spec: {hostname: "${A}-${B}", subdomain: "${B}+${A}"}}}}}`,
			vm:              `{spec: {template: {spec: {hostname: "a-b", subdomain: "a+b"}}}}`,
			wantDifferences: []string{`spec.template.spec.subdomain: want "b+a", got "a+b"`},
		},
		"an escaped placeholder is the text that it makes": {
			spec:       `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "$${A}${A}$${HOME}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "${A}x${HOME}"}}}}`,
			wantValues: map[string]string{"A": "x"},
		},
		"a reference that is kept is text": {
			spec:            `{undefinedReferences: Keep, parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "${A}${HOME}", subdomain: "${HOME}"}}}}}`,
			vm:              `{spec: {template: {spec: {hostname: "x${HOME}", subdomain: "/root"}}}}`,
			wantDifferences: []string{`spec.template.spec.subdomain: want "${HOME}", got "/root"`},
		},
		"a long text with what JSON escapes": {
			spec:       `{parameters: [{name: A, multiline: true}], virtualMachine: {spec: {template: {spec: {hostname: "#\n\t\"\\${A}\u0001\r\n"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: "#\n\t\"\\\"\n\u0001\r\n"}}}}`,
			wantValues: map[string]string{"A": "\"\n"},
		},
		"something else than text is a difference": {
			spec:            `{parameters: [{name: A}], virtualMachine: {spec: {template: {spec: {hostname: "${A}", subdomain: x}}}}}`,
			vm:              `{spec: {template: {spec: {hostname: {a: b}, subdomain: 1}}}}`,
			wantDifferences: []string{`spec.template.spec.hostname: want "${A}", got an object`, `spec.template.spec.subdomain: want "x", got 1`},
		},
		"a parameter that shows nowhere has no value": {
			spec: `{message: "${A}", parameters: [{name: A, value: x}, {name: B, required: true}], virtualMachine: {}}`,
			vm:   `{}`,
		},
		"a default is no constraint": {
			spec:       `{parameters: [{name: A, value: x}], virtualMachine: {spec: {template: {spec: {hostname: "${A}"}}}}}`,
			vm:         `{spec: {template: {spec: {hostname: z}}}}`,
			wantValues: map[string]string{"A": "z"},
		},
	})
}

func TestMatchRefusesWhatIsNotJSON(t *testing.T) {
	compiled := compile(t, `{parameters: [{name: A}], virtualMachine: {metadata: {labels: {a: b}}, spec: {template: {spec: {networks: "${{A}}", tolerations: [{key: a}]}}}}}`)
	for name, vm := range map[string]map[string]any{
		"a Go integer":       {"metadata": map[string]any{"labels": map[string]any{"a": 1}}},
		"a map of strings":   {"metadata": map[string]any{"labels": map[string]string{"a": "b"}}},
		"below a parameter":  {"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"networks": []any{map[string]any{"a": float32(1)}}}}}},
		"an item of a list":  {"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"tolerations": []any{struct{}{}}}}}},
		"the spec as struct": {"spec": struct{}{}},
	} {
		t.Run(name, func(t *testing.T) {
			if found, err := compiled.Match(vm); err == nil {
				t.Errorf("got %v, want an error", found)
			}
		})
	}
	if found, err := compiled.Match(nil); err != nil || found.Matches() {
		t.Errorf("nothing at all: got %v, %v; want a difference", found, err)
	}
}

func TestMatchStopsAfterManyDifferences(t *testing.T) {
	labels := map[string]string{}
	for i := range 1000 {
		labels[fmt.Sprint("l", i)] = "x"
	}
	encoded := mustMarshal(t, labels)
	const want = 256
	if got := len(match(t, `{virtualMachine: {metadata: {labels: `+string(encoded)+`}}}`, `{}`).Differences()); got != want {
		t.Errorf("got %d differences, want %d", got, want)
	}
}

func TestMatchIsSafeForConcurrentUse(t *testing.T) {
	compiled, vm := compileFile(t, "fedora.yaml"), readMachine(t, "fedora-stored.json")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				found, err := compiled.Match(vm)
				if err != nil || !found.Matches() || found.Values()["NAME"] != "web-1" {
					t.Error(found, err)
				}
			}
		})
	}
	group.Wait()
}
