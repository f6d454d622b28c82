package spec

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/rego"
)

func TestWhatNoRequestReaches(t *testing.T) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	const text = `
match: {%s}
rego: |
  package kept

  deny contains "kept" if {
    input.request.operation == "DELETE"
  }
tests:
- {name: a deletion, input: {oldObject: {kind: VirtualMachine, metadata: {name: a}}}, deny: [kept]}
- {name: a creation, input: {object: {metadata: {name: a}}}}
`
	for match, want := range map[string][]rego.Problem{
		`operations: [CREATE, DELETE]`: nil,
		``: {
			{Code: CodeUnreached, Field: "tests[0].input", Message: `test "a deletion" decides a request that the policy does not evaluate: spec.match.operations is CREATE and UPDATE, without DELETE`},
			{Code: CodeUnreached, Row: 4, Column: 3, Message: "this is never true: spec.match.operations is CREATE and UPDATE, without DELETE"},
		},
		`operations: [CREATE, DELETE], kinds: [VirtualMachineTemplate]`: {
			{Code: CodeUnreached, Field: "tests[0].input", Message: `test "a deletion" decides a request that the policy does not evaluate: spec.match.kinds is VirtualMachineTemplate, without VirtualMachine`},
		},
	} {
		t.Run(match, func(t *testing.T) {
			read, problems := read(t, fmt.Sprintf(text, match))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			policy, err := compiler.Compile(t.Context(), read.Definition)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, read.Unreached(policy)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
