package definition

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// parsed returns a schema from YAML.
func parsed(t *testing.T, text string) Schema {
	t.Helper()
	var s Schema
	if err := yaml.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReadingADefinition(t *testing.T) {
	const versions = `{spec: {versions: [
  {name: v1alpha1, schema: {openAPIV3Schema: {type: object, properties: {old: {type: string}}}}},
  {name: v1, storage: true, schema: {openAPIV3Schema: {type: object, properties: {new: {type: string}}}}},
  {name: v2}, {name: v3, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
	for name, tc := range map[string]struct{ definition, version, want string }{
		"the stored version":                {versions, "", "new"},
		"a version":                         {versions, "v1alpha1", "old"},
		"a version that does not exist":     {versions, "v4", "there is no version v4"},
		"a version without schema":          {versions, "v2", "the schema defines no fields"},
		"a version with any fields":         {versions, "v3", "the schema defines no fields"},
		"no version is stored":              {`{spec: {versions: [{name: v1}]}}`, "", "no version is stored"},
		"an empty definition":               {`{}`, "v1", "there is no version v1"},
		"a type that is a number":           {`{spec: {versions: [{name: v1, schema: {openAPIV3Schema: {type: 5}}}]}}`, "v1", "decoding the definition: json: cannot unmarshal number into Go struct field"},
		"properties that are a list":        {`{spec: {versions: [{name: v1, schema: {openAPIV3Schema: {properties: []}}}]}}`, "v1", "decoding the definition: json: cannot unmarshal array into Go struct field"},
		"items that are a list of schemas":  {`{spec: {versions: [{name: v1, schema: {openAPIV3Schema: {properties: {a: {items: [{}]}}}}}]}}`, "v1", "decoding the definition: json: cannot unmarshal array into Go struct field"},
		"an additional part of the schema":  {`{spec: {versions: [{name: v1, schema: {openAPIV3Schema: {properties: {a: {default: 1, enum: [1]}}}}}]}}`, "v1", "a"},
		"fields beside any other of a type": {`{spec: {versions: [{name: v1, schema: {openAPIV3Schema: {x-kubernetes-preserve-unknown-fields: true, properties: {a: {}}}}}]}}`, "v1", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			content, err := yaml.YAMLToJSON([]byte(tc.definition))
			if err != nil {
				t.Fatal(err)
			}
			s, err := Read(content, tc.version)
			if err != nil {
				if !strings.HasPrefix(err.Error(), tc.want) {
					t.Errorf("got the error %q, want %q", err, tc.want)
				}
				return
			}
			if _, found := s.Properties[tc.want]; !found {
				t.Errorf("got %+v, want the field %s", s, tc.want)
			}
		})
	}
}

func TestExtendedOnlyAdds(t *testing.T) {
	const base = `{type: object, properties: {
  spec: {type: object, properties: {
    cpu: {type: object, properties: {cores: {type: integer}}},
    disks: {type: array, items: {type: object, properties: {name: {type: string}}}},
    names: {type: array},
    labels: {type: object},
    memory: {anyOf: [{type: number}, {type: string}]},
    any: {}}}}}`
	in := func(spec string) string { return `{type: object, properties: {spec: ` + spec + `}}` }
	for name, tc := range map[string]struct {
		by string
		// want replaces words of base.
		want  []string
		added int
	}{
		"an equal schema":                          {by: base},
		"a schema with fewer fields":               {by: in(`{type: object, properties: {cpu: {type: object}}}`)},
		"a nested field":                           {in(`{type: object, properties: {cpu: {type: object, properties: {threads: {type: integer, minimum: 1}}}}}`), []string{"cores: {type: integer}", "cores: {type: integer}, threads: {type: integer}"}, 1},
		"a field with fields":                      {in(`{type: object, properties: {cpu: {type: object, properties: {numa: {type: object, properties: {size: {type: string}}}}}}}`), []string{"cores: {type: integer}", "cores: {type: integer}, numa: {type: object, properties: {size: {type: string}}}"}, 2},
		"a field of items":                         {in(`{type: object, properties: {disks: {type: array, items: {type: object, properties: {bus: {type: string}}}}}}`), []string{"name: {type: string}", "name: {type: string}, bus: {type: string}"}, 1},
		"a list of objects":                        {in(`{type: object, properties: {cpu: {type: object, properties: {dies: {type: array, items: {type: object, properties: {id: {type: integer}}}}}}}}`), []string{"cores: {type: integer}", "cores: {type: integer}, dies: {type: array, items: {type: object, properties: {id: {type: integer}}}}"}, 2},
		"a map, a quantity and anything":           {in(`{type: object, properties: {cpu: {type: object, properties: {m: {type: object, additionalProperties: {type: object, properties: {x: {type: string}}}}, q: {x-kubernetes-int-or-string: true}, a: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}`), []string{"cores: {type: integer}", "cores: {type: integer}, m: {type: object}, q: {anyOf: [{type: number}, {type: string}]}, a: {}"}, 3},
		"a field beside any others":                {in(`{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {cpu: {x-kubernetes-preserve-unknown-fields: true, properties: {threads: {type: integer}}}}}`), []string{"cores: {type: integer}", "cores: {type: integer}, threads: {type: integer}"}, 1},
		"fields of a map":                          {by: in(`{type: object, properties: {labels: {type: object, properties: {only: {type: string}}}}}`)},
		"a type for what may be anything":          {by: in(`{type: object, properties: {any: {type: string}, names: {type: array, items: {type: integer}}}}`)},
		"another type of a field":                  {by: in(`{type: object, properties: {cpu: {type: string}, disks: {type: object, properties: {bus: {type: string}}}, memory: {type: boolean}}}`)},
		"another type of a leaf":                   {by: in(`{type: object, properties: {cpu: {type: object, properties: {cores: {type: object, properties: {x: {type: string}}}}}}}`)},
		"a list that has properties":               {by: in(`{type: array, properties: {x: {type: string}}}`)},
		"items of what is no list":                 {by: in(`{type: object, items: {type: object, properties: {x: {type: string}}}}`)},
		"any fields where there are certain ones":  {by: in(`{x-kubernetes-preserve-unknown-fields: true}`)},
		"a quantity where there are certain ones":  {by: in(`{x-kubernetes-int-or-string: true}`)},
		"an empty schema":                          {by: `{}`},
		"an object of Kubernetes instead of field": {by: in(`{type: object, x-kubernetes-embedded-resource: true}`)},
	} {
		t.Run(name, func(t *testing.T) {
			want := base
			if tc.want != nil {
				want = strings.Replace(base, tc.want[0], tc.want[1], 1)
			}
			original := parsed(t, base)
			got, added, err := original.Extended(parsed(t, tc.by))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parsed(t, want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if added != tc.added {
				t.Errorf("%d fields were added, want %d", added, tc.added)
			}
			if diff := cmp.Diff(parsed(t, base), original); diff != "" {
				t.Errorf("the original has changed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBounds reads schemas that are as large as possible, and too large.
func TestBounds(t *testing.T) {
	wide := func(n, width int) Schema {
		s := Schema{Type: "object", Properties: make(map[string]Schema, n)}
		for i := range n {
			s.Properties[fmt.Sprintf("%0*d", width, i)] = Schema{Type: "string"}
		}
		return s
	}
	deep := func(n int, in func(Schema) Schema) Schema {
		s := Schema{Type: "string"}
		for range n {
			s = in(s)
		}
		return s
	}
	fields := func(s Schema) Schema { return Schema{Type: "object", Properties: map[string]Schema{"a": s}} }
	items := func(s Schema) Schema { return Schema{Type: "array", Items: &s} }
	for name, tc := range map[string]struct {
		by   Schema
		want string
	}{
		"as many fields as possible":     {by: wide(MaxFields-1, 8)},
		"one more":                       {wide(MaxFields, 8), "the schema has more than 10000 fields"},
		"a million fields":               {wide(1_000_000, 8), "the schema has more than 10000 fields"},
		"long names":                     {wide(1_000, 300), "the names of the fields have more than 262144 bytes"},
		"as deep as possible":            {by: deep(MaxDepth-1, fields)},
		"one deeper":                     {deep(MaxDepth, fields), "the schema is more than 64 fields deep"},
		"a hundred thousand fields deep": {deep(100_000, fields), "the schema is more than 64 fields deep"},
		"a hundred thousand lists deep":  {deep(100_000, items), "the schema is more than 64 fields deep"},
	} {
		t.Run(name, func(t *testing.T) {
			whole := fields(tc.by)
			closed := Schema{Type: "object", Properties: map[string]Schema{"b": {Type: "string"}}}
			_, _, added := closed.Extended(whole)
			_, _, compared := whole.Extended(whole)
			_, reduced := whole.Reduced()
			for what, err := range map[string]error{"added": added, "compared": compared, "reduced": reduced} {
				if got := fmt.Sprint(err); got != tc.want && (err != nil || tc.want != "") {
					t.Errorf("%s: got %s, want %q", what, got, tc.want)
				}
			}
		})
	}
}

// FuzzExtended checks, for any definitions, that what a base permits stays as it was, and that it panics never.
func FuzzExtended(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"array","items":{"properties":{"b":{}}}}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{"properties":{"c":{}}}}}}`)
	f.Add(`{"properties":{"a":{}}}`, `{"properties":{"a":{"type":"object"},"":{"x-kubernetes-int-or-string":true}}}`)
	f.Fuzz(func(t *testing.T, base, by string) {
		var a, b Schema
		if json.Unmarshal([]byte(base), &a) != nil || json.Unmarshal([]byte(by), &b) != nil {
			return
		}
		a, err := a.Reduced()
		if err != nil {
			return
		}
		extended, added, err := a.Extended(b)
		if err != nil {
			return
		}
		contains(t, "", a, extended)
		again, more, err := extended.Extended(b)
		if err != nil || more != 0 || !cmp.Equal(again, extended) {
			t.Errorf("extended again: %d more fields after %d, %v\n%s", more, added, err, cmp.Diff(extended, again))
		}
	})
}

// contains checks that a schema has all fields of another with the same types.
func contains(t *testing.T, at string, base, extended Schema) {
	t.Helper()
	if base.Type != extended.Type || len(base.Properties) == 0 && len(extended.Properties) > 0 || (base.Items == nil) != (extended.Items == nil) || !cmp.Equal(base.AnyOf, extended.AnyOf) {
		t.Errorf("%s: %+v became %+v", at, base, extended)
	}
	for name, property := range base.Properties {
		found, has := extended.Properties[name]
		if !has {
			t.Errorf("%s.%s is gone", at, name)
		}
		contains(t, at+"."+name, property, found)
	}
	if base.Items != nil && extended.Items != nil {
		contains(t, at+"[]", *base.Items, *extended.Items)
	}
}
