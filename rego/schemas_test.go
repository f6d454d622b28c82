package rego

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmstencil/stencil/rego/schema"
	"github.com/vmstencil/stencil/rego/schema/definition"
)

// with returns the embedded schemas and those of a VirtualMachine whose domain has another field.
func with(t *testing.T, field string) *schema.Schemas {
	t.Helper()
	var by definition.Schema
	text := fmt.Sprintf(`{"type":"object","properties":{"spec":{"type":"object","properties":{"template":{"type":"object","properties":{"spec":{"type":"object","properties":{
		"domain":{"type":"object","properties":{%q:{"type":"object","properties":{"level":{"type":"integer"}}}}}}}}}}}}}`, field)
	if err := json.Unmarshal([]byte(text), &by); err != nil {
		t.Fatal(err)
	}
	embedded, err := schema.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	extended, added, err := embedded.Extended(KindVirtualMachine, by)
	if err != nil || added != 2 {
		t.Fatalf("added %d fields: %v", added, err)
	}
	return extended
}

func readsField(path string) string {
	return "package p\n\ndeny contains \"deep\" if input.object.spec.template.spec.domain." + path + " > 3\n"
}

func TestPoliciesAreCheckedByTheSchemasInUse(t *testing.T) {
	embedded, err := schema.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	const unknown = `3:64: unknown field: input.object.spec.template.spec.domain has no "trust"`
	for name, tc := range map[string]struct {
		schemas    *schema.Schemas
		definition Definition
		want       string
	}{
		"a field that no schema has":             {embedded, Definition{Source: readsField("trust.level")}, unknown},
		"a field of the installed definition":    {with(t, "trust"), Definition{Source: readsField("trust.level")}, ""},
		"a misspelt field below it":              {with(t, "trust"), Definition{Source: readsField("trust.levle")}, `3:70: unknown field: input.object.spec.template.spec.domain.trust has no "levle"; did you mean level?`},
		"its type":                               {with(t, "trust"), Definition{Source: readsField("trust.level.x")}, "3:76: input.object.spec.template.spec.domain.trust.level has no fields: it is a number"},
		"one of several kinds":                   {with(t, "trust"), Definition{Source: readsField("trust.level"), Kinds: []string{KindVirtualMachine, KindVirtualMachineTemplateImport}}, ""},
		"another kind":                           {with(t, "trust"), Definition{Source: readsField("trust.level"), Kinds: []string{KindVirtualMachineTemplateImport}}, `3:43: unknown field: input.object.spec has no "template"`},
		"fields of the embedded ones remain":     {with(t, "trust"), Definition{Source: readsField("cpu.cores")}, ""},
		"a field that no schema has, with any":   {embedded, Definition{Source: readsField("trust.level"), AnyFields: true}, ""},
		"any fields of several kinds":            {embedded, Definition{Source: readsField("trust.level"), AnyFields: true, Kinds: schema.Kinds()}, ""},
		"any fields of objects, not of requests": {embedded, Definition{Source: "package p\n\ndeny contains \"x\" if input.request.nam\n", AnyFields: true}, `3:36: unknown field: input.request has no "nam"; did you mean name?`},
	} {
		t.Run(name, func(t *testing.T) {
			compiler, err := NewCompiler()
			if err != nil {
				t.Fatal(err)
			}
			if err := compiler.UseSchemas(tc.schemas); err != nil {
				t.Fatal(err)
			}
			if compiler.Schemas() != tc.schemas {
				t.Error("other schemas are in use")
			}
			policy, err := compiler.Compile(t.Context(), tc.definition)
			if err != nil {
				if !strings.HasPrefix(err.Error(), tc.want) || tc.want == "" {
					t.Errorf("got %v, want %q", err, tc.want)
				}
				return
			}
			if tc.want != "" {
				t.Fatalf("it compiles, want %q", tc.want)
			}
			document := machineDocument(t)
			domain := document.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["domain"].(map[string]any)
			domain["trust"] = map[string]any{"level": int64(4)}
			domain["cpu"] = map[string]any{"cores": int64(4)}
			in, err := NewInput(document)
			if err != nil {
				t.Fatal(err)
			}
			if found, err := policy.Evaluate(t.Context(), in); err != nil || len(found.Deny) != 1 {
				t.Errorf("found %+v, %v", found, err)
			}
		})
	}
}

func TestAPolicyIsCompiledOnceForEachStateOfTheSchemas(t *testing.T) {
	compiler, err := NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	embedded := compiler.Schemas()
	compile := func(schemas *schema.Schemas) *program {
		t.Helper()
		if err := compiler.UseSchemas(schemas); err != nil {
			t.Fatal(err)
		}
		policy, err := compiler.Compile(t.Context(), Definition{Source: readsField("cpu.cores")})
		if err != nil {
			t.Fatal(err)
		}
		return policy.program
	}
	first, other, equal := compile(embedded), compile(with(t, "trust")), compile(with(t, "trust"))
	if first == other {
		t.Error("programs of different schemas are shared")
	}
	if other != equal {
		t.Error("programs of equal schemas are not shared")
	}
	if compile(embedded) != first {
		t.Error("programs of the schemas of before are not shared")
	}
}

// TestSchemasOfAnySizeWithinTheBounds measures the largest schema, and tries types that Kubernetes does not have.
func TestSchemasOfAnySizeWithinTheBounds(t *testing.T) {
	compiler, err := NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	embedded := compiler.Schemas()
	large := definition.Schema{Type: "object", Properties: map[string]definition.Schema{}}
	for i := range definition.MaxFields {
		large.Properties[fmt.Sprintf("field%d", i)] = definition.Schema{Type: "string"}
	}
	extended, _, err := embedded.Extended(KindVirtualMachine, large)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := compiler.UseSchemas(extended); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	for name, foreign := range map[string]definition.Schema{
		"a type that does not exist": {Type: "object", Properties: map[string]definition.Schema{"a": {Type: "whatever"}}},
		"a name with any bytes":      {Type: "object", Properties: map[string]definition.Schema{"\xff\x00\"$ref": {Type: "string"}}},
		"a reference":                {Type: "object", Properties: map[string]definition.Schema{"$ref": {Type: "string"}, "properties": {Type: "string"}, "type": {Type: "array"}}},
	} {
		odd, _, err := embedded.Extended(KindVirtualMachine, foreign)
		if err != nil {
			t.Fatal(err)
		}
		before := compiler.Schemas()
		if err := compiler.UseSchemas(odd); err != nil && compiler.Schemas() != before {
			t.Errorf("%s: rejected and in use: %v", name, err)
		} else {
			t.Logf("%s: %v", name, err)
		}
		if _, err := compiler.Compile(t.Context(), Definition{Source: readsField("cpu.cores")}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := embedded.Extended("Pod", large); err == nil || err.Error() != `there is no schema of kind "Pod"` {
		t.Errorf("a kind that policies do not read: %v", err)
	}
}

func TestSchemasChangeWhilePoliciesAreCompiled(t *testing.T) {
	compiler, err := NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	states := []*schema.Schemas{compiler.Schemas(), with(t, "trust")}
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for i := range 50 {
				_, err := compiler.Compile(t.Context(), Definition{Source: readsField("trust.level") + fmt.Sprintf("# %d\n", i)})
				if rejected := (*CompileError)(nil); err != nil && !errors.As(err, &rejected) {
					t.Error(err)
				}
			}
		})
	}
	for i := range 100 {
		if err := compiler.UseSchemas(states[i%2]); err != nil {
			t.Error(err)
		}
	}
	group.Wait()
}
