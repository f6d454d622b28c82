package rego_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/rego"
)

func TestWhatAPolicyComparesWithConstants(t *testing.T) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	const head = "package p\n\ndeny contains \"no\" if {\n\t"
	for expression, want := range map[string][]rego.Compared{
		`input.request.operation == "DELETE"`:             {{Path: []string{"request", "operation"}, Value: "DELETE", Row: 4, Column: 2}},
		`"DELETE" == input.request.operation`:             {{Path: []string{"request", "operation"}, Value: "DELETE", Row: 4, Column: 2}},
		`input.request.operation in {"DELETE", "UPDATE"}`: {{Path: []string{"request", "operation"}, Value: "DELETE", Row: 4, Column: 2}, {Path: []string{"request", "operation"}, Value: "UPDATE", Row: 4, Column: 2}},
		`input.request.operation in ["DELETE"]`:           {{Path: []string{"request", "operation"}, Value: "DELETE", Row: 4, Column: 2}},
		`input.request.operation != "DELETE"`:             nil,
		`not input.request.operation == "DELETE"`:         nil,
		`input.request.name == "DELETE"`:                  nil,
		`input.request.operation == input.request.name`:   nil,
	} {
		t.Run(expression, func(t *testing.T) {
			policy, err := compiler.Compile(t.Context(), rego.Definition{Name: "p", Source: head + expression + "\n}\n"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, policy.Compares("request", "operation")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
