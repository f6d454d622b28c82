package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/rego"
)

// CodeUnreached is the code of a problem with a rule or a test about requests that the policy does not evaluate.
const CodeUnreached = "unreached"

// Compared is a policy that reports the constants with which it compares a place in input; a rego.Policy implements it.
type Compared interface {
	Compares(at ...string) []rego.Compared
}

// Unreached returns a problem for each test of a request that spec.match does not select, and for each comparison with an operation that it does
// not select, as the compiler does for kinds: a rule that is never evaluated protects nothing, and a test that decides such a request shows nothing. They are no errors, because such a
// policy is valid.
func (s *Spec) Unreached(policy Compared) []rego.Problem {
	var found []rego.Problem
	for i, each := range s.Cases {
		for _, missing := range s.unselected(each.Document.Request.Operation, each.Document.Request.Kind) {
			found = append(found, rego.Problem{
				Code: CodeUnreached, Field: fmt.Sprintf("tests[%d].input", i),
				Message: fmt.Sprintf("test %q decides a request that the policy does not evaluate: %s", each.Name, missing),
			})
		}
	}
	for _, each := range policy.Compares("request", "operation") {
		for _, missing := range s.unselected(each.Value, "") {
			found = append(found, rego.Problem{Code: CodeUnreached, Row: each.Row, Column: each.Column, Message: "this is never true: " + missing})
		}
	}
	return found
}

// unselected describes the values that spec.match lacks for requests with this operation and of this kind; empty strings are selected.
func (s *Spec) unselected(operation, kind string) []string {
	var missing []string
	if operation != "" && !slices.Contains(s.Match.Operations, operation) {
		missing = append(missing, fmt.Sprintf("spec.match.operations is %s, without %s", strings.Join(s.Match.Operations, " and "), operation))
	}
	if kind != "" && !slices.Contains(s.Match.Kinds, kind) {
		missing = append(missing, fmt.Sprintf("spec.match.kinds is %s, without %s", strings.Join(s.Match.Kinds, " and "), kind))
	}
	return missing
}
