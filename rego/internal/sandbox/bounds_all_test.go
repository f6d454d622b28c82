package sandbox

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// slowest is how many times as long as converting the largest text to lower case a call of a built-in function may take.
const slowest = 40

// large are operands about as large as an input can have.
func large() map[string]*ast.Term {
	const size = 1 << 20
	wide := strings.Repeat("é", size/2)
	many := make([]*ast.Term, 10_000)
	pairs := make([][2]*ast.Term, len(many))
	for i := range many {
		many[i] = ast.StringTerm(fmt.Sprintf("é%d", i))
		pairs[i] = [2]*ast.Term{many[i], many[i/2]}
	}
	paths := make([]*ast.Term, 1000)
	for i := range paths {
		paths[i] = ast.StringTerm(strings.Repeat(fmt.Sprintf("é%d/", i), 20))
	}
	return map[string]*ast.Term{
		"wide":          ast.StringTerm(wide),
		"wide, another": ast.StringTerm(wide[:size/2] + "x"),
		"ASCII":         ast.StringTerm(strings.Repeat("a", size)),
		"digits":        ast.StringTerm(strings.Repeat("9", size)),
		"characters":    ast.StringTerm(wide[:2]),
		"number":        ast.NumberTerm("1e400"),
		"small number":  ast.NumberTerm("3"),
		"array":         ast.ArrayTerm(many...),
		"set":           ast.SetTerm(many...),
		"object":        ast.ObjectTerm(pairs...),
		"paths":         ast.ArrayTerm(paths...),
		"sets":          ast.SetTerm(ast.SetTerm(many...), ast.SetTerm(paths...)),
		"one text":      ast.ArrayTerm(ast.StringTerm(wide)),
		"null":          ast.NullTerm(),
	}
}

// threadTime returns the processor time of the thread.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	const thread = 1 // RUSAGE_THREAD of Linux
	var usage syscall.Rusage
	if err := syscall.Getrusage(thread, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// TestNoCallTakesLong calls each function that policies have with large operands in all combinations. The times are the processor's, as a multiple of
// that of a function that is linear, so that neither the machine nor its load matters.
func TestNoCallTakesLong(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	operands := large()
	call := func(b builtin, with []*ast.Term) time.Duration {
		context := topdown.BuiltinContext{Context: t.Context(), Cancel: NewBudget(t.Context(), 0, &Patterns{})}
		began := threadTime(t)
		// An error is one of the bounds, or that the operands have the wrong types.
		_ = b.function()(context, with, func(*ast.Term) error { return nil })
		return threadTime(t) - began
	}
	var unit time.Duration
	for _, b := range builtins {
		if b.name != "lower" {
			continue
		}
		for range 5 {
			unit = max(unit, call(b, []*ast.Term{operands["wide"]}))
		}
	}
	if unit == 0 {
		t.Fatal("no time was measured")
	}
	for _, b := range builtins {
		if topdown.GetBuiltin(b.name) == nil && b.instead == nil {
			continue // The compiler evaluates it.
		}
		arity := ast.BuiltinMap[b.name].Decl.Arity()
		if variadic := ast.BuiltinMap[b.name].Decl.FuncArgs().Variadic; variadic != nil {
			continue
		}
		var longest time.Duration
		var names []string
		var each func(with []*ast.Term, called []string)
		each = func(with []*ast.Term, called []string) {
			if len(with) == arity {
				took := call(b, with)
				// What is slow by chance, as by a collection of garbage, is not slow again.
				for range 3 {
					if took > slowest*unit {
						took = min(took, call(b, with))
					}
				}
				if took > longest {
					longest, names = took, append([]string(nil), called...)
				}
				return
			}
			for name, operand := range operands {
				if !accepts(b.name, len(with), operand) {
					continue
				}
				each(append(with, operand), append(called, name))
			}
		}
		each(nil, nil)
		if longest > slowest*unit {
			t.Errorf("%s(%s) takes %v, which is %d times as long as lower(wide)", b.name, strings.Join(names, ", "), longest, longest/unit)
		} else if longest > unit {
			t.Logf("%s(%s) takes %v, which is %d times as long as lower(wide)", b.name, strings.Join(names, ", "), longest, longest/unit)
		}
	}
}

// accepts reports whether a function takes values of the type of an operand in a position.
func accepts(name string, position int, operand *ast.Term) bool {
	wanted := ast.BuiltinMap[name].Decl.FuncArgs().Args[position]
	if named, ok := wanted.(*types.NamedType); ok {
		wanted = named.Type
	}
	var kind types.Type
	switch operand.Value.(type) {
	case ast.String:
		kind = types.S
	case ast.Number:
		kind = types.N
	case ast.Null:
		kind = types.Nl
	case *ast.Array:
		kind = types.NewArray(nil, types.A)
	case ast.Set:
		kind = types.SetOfAny
	case ast.Object:
		kind = types.NewObject(nil, types.NewDynamicProperty(types.A, types.A))
	}
	return compatible(wanted, kind)
}

func compatible(wanted, kind types.Type) bool {
	switch w := wanted.(type) {
	case types.Any:
		if len(w) == 0 {
			return true
		}
		for _, part := range w {
			if compatible(part, kind) {
				return true
			}
		}
		return false
	case *types.Array:
		_, ok := kind.(*types.Array)
		return ok
	case *types.Set:
		_, ok := kind.(*types.Set)
		return ok
	case *types.Object:
		_, ok := kind.(*types.Object)
		return ok
	}
	return types.Compare(wanted, kind) == 0
}
