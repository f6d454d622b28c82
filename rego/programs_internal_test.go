package rego

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

func shareSource(n int) string {
	return fmt.Sprintf("package p\n\ndeny contains sprintf(\"%d %%v\", [data.parameters.max]) if input.object.metadata.name\n", n)
}

func TestPoliciesOfEqualSourceShareAProgram(t *testing.T) {
	compiler, err := NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	schema := map[string]any{"type": "object", "properties": map[string]any{"max": map[string]any{"type": "integer"}}}
	compile := func(d Definition) *Policy {
		t.Helper()
		policy, err := compiler.Compile(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		return policy
	}
	first := Definition{Name: "first", Source: shareSource(1), Parameters: map[string]any{"max": 1}, Schema: schema}
	one := compile(first)
	for _, tc := range []struct {
		name   string
		change func(*Definition)
		shared bool
	}{
		{"another name", func(d *Definition) { d.Name = "second" }, true},
		{"another value of a parameter with a schema", func(d *Definition) { d.Parameters = map[string]any{"max": 2} }, true},
		{"another source", func(d *Definition) { d.Source = shareSource(2) }, false},
		{"another kind", func(d *Definition) { d.Kinds = []string{KindVirtualMachineTemplate} }, false},
		{"no schema", func(d *Definition) { d.Schema = nil }, false},
		{"another value without a schema", func(d *Definition) { d.Schema, d.Parameters = nil, map[string]any{"max": "many"} }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			definition := first
			tc.change(&definition)
			other := compile(definition)
			if shared := other.program == one.program; shared != tc.shared {
				t.Errorf("the program is shared: %v, want %v", shared, tc.shared)
			}
			in, err := NewInput(machineDocument(t))
			if err != nil {
				t.Fatal(err)
			}
			result, err := other.Evaluate(t.Context(), in)
			want := fmt.Sprintf("%v", definition.Parameters["max"])
			if err != nil || tc.shared && (len(result.Deny) != 1 || result.Deny[0].Message != "1 "+want) {
				t.Errorf("found %v, %v, want a message with %s", result, err, want)
			}
			if other.Name() != definition.Name {
				t.Errorf("the name is %s, want %s", other.Name(), definition.Name)
			}
		})
	}
	conflict := "package p\n\nsize := 1 if input.object.metadata.name\n\nsize := 2 if input.object.metadata.uid\n\ndeny contains \"x\" if size > 0\n"
	for _, name := range []string{"red", "blue"} {
		in, err := NewInput(machineDocument(t))
		if err != nil {
			t.Fatal(err)
		}
		want := "5:1: rule size produced conflicting values: 1 at " + name + ":3 2 at " + name + ":5"
		if _, err := compile(Definition{Name: name, Source: conflict}).Evaluate(t.Context(), in); err == nil || err.Error() != want {
			t.Errorf("the error of a shared program is %v, want %s", err, want)
		}
	}
	bad := first
	bad.Parameters = map[string]any{"max": "many"}
	if _, err := compiler.Compile(t.Context(), bad); err == nil {
		t.Error("parameters of a shared program are not checked")
	}
}

func TestProgramsWithoutPoliciesAreFreed(t *testing.T) {
	compiler, err := NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for worker := range 2 {
		group.Go(func() {
			for i := range minimumSweep {
				if _, err := compiler.Compile(t.Context(), Definition{Name: "p", Source: shareSource(worker*minimumSweep + i), Parameters: map[string]any{"max": 1}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	deadline := time.Now().Add(20 * time.Second)
	for {
		runtime.GC()
		compiler.programs.mu.Lock()
		compiler.programs.sweepAt = 0
		compiler.programs.mu.Unlock()
		compiler.programs.put(programKey{}, nil)
		compiler.programs.mu.Lock()
		left := len(compiler.programs.byKey)
		compiler.programs.mu.Unlock()
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d programs are held", left)
		}
	}
}
