package policies

import (
	"context"
	"errors"
	"fmt"
	"time"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

// policyTimeout is the timeout of a hostile policy.
const policyTimeout = 100 * time.Millisecond

// harmful are hostile policies. Those that compile are evaluated beside good ones.
var harmful = []struct{ name, source string }{
	{"nested comprehensions", `package p

deny contains "slow" if {
	range := numbers.range(1, 1000)
	count([x | some a in range; some b in range; some c in range; x := a + b + c]) == 0
}`},
	{"doubling strings", `package p

twice(text) := concat("", [text, text])

deny contains "large" if {
	a := twice(twice(twice(twice(twice(twice(twice(twice("0123456789abcdef"))))))))
	b := twice(twice(twice(twice(twice(twice(twice(twice(a))))))))
	c := twice(twice(twice(twice(twice(twice(twice(twice(b))))))))
	count(c) == 0
}`},
	{"a huge range", `package p

deny contains "large" if count(numbers.range(1, 1000000000)) == 0`},
	{"comprehensions nested more deeply than is allowed", `package p

deny contains "deep" if count([[[[[[f | some f in e] | some e in d] | some d in c] | some c in b] | some b in a] | some a in input.object]) == 0`},
	{"a search that backtracks", `package p

deny contains "slow" if {
	range := numbers.range(1, 2000)
	some a in range
	some b in range
	some c in range
	a + b + c == -1
}`},
	{"messages without end", `package p

deny contains sprintf("message %d of many, and each is long enough to hurt somebody who has to read it", [i]) if some i in numbers.range(1, 10000)`},
	{"a large product", `package p

deny contains "large" if {
	range := numbers.range(1, 3000)
	count({[a, b] | some a in range; some b in range}) == 0
}`},
}

// Hostility is the effect of a hostile policy.
type Hostility struct {
	Name string
	// Rejected reports that it did not compile.
	Rejected bool
	// Result and Took are of its evaluation and of the whole request.
	Result policyset.Result
	Took   time.Duration
}

// resist evaluates the VM by twenty good policies and a hostile one. It fails when a good one has no result.
func resist(ctx context.Context, compiler *rego.Compiler, policies library, vm *subject) ([]Hostility, error) {
	good, err := policies.specs(loaded).compile(ctx, compiler)
	if err != nil {
		return nil, err
	}
	var results []Hostility
	for _, each := range harmful {
		compiled, err := compiler.Compile(ctx, rego.Definition{Name: "hostile", Source: each.source})
		var rejected *rego.CompileError
		switch {
		case errors.As(err, &rejected):
			results = append(results, Hostility{Name: each.name, Rejected: true})
			continue
		case err != nil:
			return nil, fmt.Errorf("compiling %s: %w", each.name, err)
		}
		set := policyset.NewSet(append([]policyset.Entry{{Policy: compiled, Timeout: policyTimeout}}, good...))
		start := time.Now()
		decision, err := vm.evaluate(ctx, policyset.NewEvaluator(policyset.Options{}), set)
		took := time.Since(start)
		if err != nil {
			return nil, err
		}
		result := Hostility{Name: each.name, Took: took}
		for _, evaluation := range decision.Evaluations {
			switch {
			case evaluation.Policy == "hostile":
				result.Result = evaluation.Result
			case evaluation.Result.Failed():
				return nil, fmt.Errorf("beside %s, policy %s: %s: %w", each.name, evaluation.Policy, evaluation.Result, evaluation.Err)
			}
		}
		results = append(results, result)
	}
	return results, nil
}
