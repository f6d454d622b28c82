package rego

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Compared is a constant with which a policy compares a place in input.
type Compared struct {
	// Path is the place, below input.
	Path []string
	// Value is the constant.
	Value string
	// Row and Column are the position of the comparison in the module, counted from 1.
	Row, Column int
}

// Compares returns the constants with which the policy's own rules compare the place at a path in input, with == or in.
func (p *Policy) Compares(at ...string) []Compared {
	var found []Compared
	for _, each := range p.program.compared {
		if slices.Equal(each.Path, at) {
			found = append(found, each)
		}
	}
	return found
}

// comparisons are the functions of comparisons that only equal values satisfy, with the positions of their operands: `x == "a"`, `x = "a"` and
// `x in {"a", "b"}`.
var comparisons = []ast.Ref{ast.Equal.Ref(), ast.Equality.Ref(), ast.Member.Ref()}

// comparedIn returns the comparisons of places in input with constants in a module.
func comparedIn(module *ast.Module) []Compared {
	var all []Compared
	add := func(place, constant *ast.Term, location *ast.Location) {
		from, isRef := place.Value.(ast.Ref)
		value, isText := constant.Value.(ast.String)
		if isRef && isText && location != nil && from.HasPrefix(ast.InputRootRef) {
			all = append(all, Compared{Path: pathOf(from[1:]), Value: string(value), Row: location.Row, Column: location.Col})
		}
	}
	ast.WalkExprs(module, func(expr *ast.Expr) bool {
		terms, isCall := expr.Terms.([]*ast.Term)
		// What `not` is before says something about all others.
		if !isCall || len(terms) != 3 || expr.Negated || len(expr.With) > 0 {
			return false
		}
		function, _ := terms[0].Value.(ast.Ref)
		if !slices.ContainsFunc(comparisons, func(each ast.Ref) bool { return each.Equal(function) }) {
			return false
		}
		switch listed := terms[2].Value.(type) {
		case ast.Set:
			listed.Foreach(func(each *ast.Term) { add(terms[1], each, expr.Location) })
		case *ast.Array:
			listed.Foreach(func(each *ast.Term) { add(terms[1], each, expr.Location) })
		default:
			add(terms[1], terms[2], expr.Location)
			add(terms[2], terms[1], expr.Location)
		}
		return false
	})
	return all
}
