package rego_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/rego"
)

const usesData = `package p

import data.cluster

allowed := {image | some image in cluster.images}

deny contains sprintf("%s is not allowed", [input.object.metadata.name]) if {
	not input.object.metadata.name in allowed
}

warn contains data.cluster.note if true
`

var references = []rego.Reference{{Name: "images", ConfigMap: "images", Key: "list"}, {Name: "note", ConfigMap: "images", Key: "note"}}

func valueOf(t testing.TB, value any) *rego.Value {
	t.Helper()
	made, err := rego.NewValue(value)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func named(t testing.TB, name string) *rego.Input {
	t.Helper()
	in, err := rego.NewInput(rego.Document{Request: rego.Request{Operation: "CREATE", Kind: "VirtualMachine"}, Object: map[string]any{"metadata": map[string]any{"name": name}}})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestEvaluationWithData(t *testing.T) {
	policy := compileDefinition(t, rego.Definition{Name: "p", Source: usesData, Data: references})
	images := rego.Binding{Name: "images", Value: valueOf(t, []any{"a", "b"})}
	note := rego.Binding{Name: "note", Value: valueOf(t, "a note")}
	for name, tc := range map[string]struct {
		values     []rego.Binding
		object     string
		deny, warn []string
		err        string
	}{
		"an allowed one":              {values: []rego.Binding{images, note}, object: "a", warn: []string{"a note"}},
		"one that is not":             {values: []rego.Binding{note, images}, object: "c", deny: []string{"c is not allowed"}, warn: []string{"a note"}},
		"another list":                {values: []rego.Binding{note, {Name: "images", Value: valueOf(t, []any{"c"})}}, object: "c", warn: []string{"a note"}},
		"what is not declared":        {values: []rego.Binding{images, note, {Name: "other", Value: valueOf(t, "x")}}, object: "a", warn: []string{"a note"}},
		"no values":                   {object: "a", err: "data.cluster.images has no value: none was given"},
		"one value":                   {values: []rego.Binding{images}, object: "a", err: "data.cluster.note has no value: none was given"},
		"a missing one, and its hint": {values: []rego.Binding{images, {Name: "note", Missing: "there is none; create it"}}, object: "a", err: "data.cluster.note has no value: there is none; create it"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := policy.WithData(tc.values).Evaluate(t.Context(), named(t, tc.object))
			if tc.err != "" {
				if missing := (*rego.DataError)(nil); !errors.As(err, &missing) || err.Error() != tc.err {
					t.Fatalf("got %+v, %v; want %s", result, err, tc.err)
				}
				if _, err := policy.WithData(tc.values).Explain(t.Context(), named(t, tc.object)); err == nil || err.Error() != tc.err {
					t.Errorf("explained: %v, want %s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]string{tc.deny, tc.warn}, [][]string{messages(result.Deny), messages(result.Warn)}); diff != "" {
				t.Error(diff)
			}
		})
	}
	if policy.Digest() != policy.WithData([]rego.Binding{images, note}).Digest() {
		t.Error("the digest of a policy depends on the values")
	}
	if other := compileDefinition(t, rego.Definition{Name: "p", Source: usesData, Data: []rego.Reference{{Name: "images", ConfigMap: "others", Key: "list"}, references[1]}}); other.Digest() == policy.Digest() {
		t.Error("the digest of a policy does not depend on its references")
	}
}

func messages(findings []rego.Finding) []string {
	var all []string
	for _, each := range findings {
		all = append(all, each.Message)
	}
	return all
}

// Values reach policies with other parameters, and evaluations of several requests at once.
func TestDataRemainsWithOtherParameters(t *testing.T) {
	policy := compileDefinition(t, rego.Definition{
		Name: "p", Source: "package p\n\ndeny contains data.cluster.words[data.parameters.word] if true\n", Data: []rego.Reference{{Name: "words"}},
		Parameters: map[string]any{"word": "one"},
	}).WithData([]rego.Binding{{Name: "words", Value: valueOf(t, map[string]any{"one": "1", "two": "2"})}})
	other, err := policy.WithParameters(map[string]any{"word": "two"})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for want, each := range map[string]*rego.Policy{"1": policy, "2": other} {
				if result, err := each.Evaluate(t.Context(), named(t, "a")); err != nil || cmp.Diff([]string{want}, messages(result.Deny)) != "" {
					t.Errorf("got %+v, %v; want %s", result, err, want)
				}
			}
		})
	}
	running.Wait()
}

func TestReferencesToDataAreChecked(t *testing.T) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		source, want string
		data         []rego.Reference
	}{
		"declared":                       {"package p\n\ndeny contains \"x\" if data.cluster.images[0] == 1\n", "", references},
		"a similar name":                 {"package p\n\ndeny contains \"x\" if data.cluster.image\n", "3:22: spec.data has no entry image; did you mean images?", references},
		"a similar name of an import":    {"package p\n\nimport data.cluster.imags\n\ndeny contains \"x\" if imags\n", "3:8: spec.data has no entry imags; did you mean images?\n5:22: spec.data has no entry imags; did you mean images?", references},
		"all of it":                      {"package p\n\ndeny contains \"x\" if {\n\tsome name\n\tdata.cluster[name]\n}\n", "5:2: name one value: data.cluster.NAME", references},
		"nothing is declared":            {"package p\n\ndeny contains \"x\" if data.cluster.images\n", "3:22: the policy declares no data; add to spec.data what it reads as data.cluster.images", nil},
		"a package of this name":         {"package cluster\n\nok := 1\n\ndeny contains \"x\" if data.cluster.ok\n", "", nil},
		"a package of this name, in use": {"package cluster\n\ndeny contains \"x\" if true\n", "1:1: package cluster is taken; call the package something else", references},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := compiler.Compile(t.Context(), rego.Definition{Name: "p", Source: tc.source, Data: tc.data}); err != nil {
				got = strings.TrimSpace(err.Error())
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func compileDefinition(t testing.TB, d rego.Definition) *rego.Policy {
	t.Helper()
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	policy, err := compiler.Compile(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return policy
}
