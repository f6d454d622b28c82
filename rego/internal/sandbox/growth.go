package sandbox

import (
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
)

const (
	// maxCopies is how many copies of values a value may expand to. The time of the type checker is quadratic in it, and the number doubles with each
	// line of y := [x, x].
	maxCopies = 500
	// maxPath is how many expressions are evaluated inside each other: OPA evaluates
	// the rest of a rule within the call of a function, so that the stack grows
	// with every call.
	maxPath = 10_000
)

// growth estimates, before types are checked, how large the types of the rules
// are and how deep their evaluation goes. Both are exponential in the number of
// rules that use each other twice.
type growth struct {
	rules  func(ast.Ref) []*ast.Rule
	copies map[*ast.Rule]int
	paths  map[*ast.Rule]int
}

// Growth returns the first rule that would take the type checker or the evaluation too long, or too much stack, and why; nil if
// there is none.
func Growth(compiler *ast.Compiler) (rule *ast.Rule, why string) {
	g := &growth{rules: func(ref ast.Ref) []*ast.Rule {
		return compiler.GetRulesDynamicWithOpts(ref, ast.RulesOptions{IncludeHiddenModules: true})
	}, copies: map[*ast.Rule]int{}, paths: map[*ast.Rule]int{}}
	sorted, _ := compiler.Graph.Sort()
	for _, node := range sorted {
		rule := node.(*ast.Rule)
		switch copies, path := g.rule(rule); {
		case copies > maxCopies:
			return rule, fmt.Sprintf("the value is made of more than %d values", maxCopies)
		case path > maxPath:
			return rule, fmt.Sprintf("the rules use each other so often that more than %d expressions are evaluated inside each other", maxPath)
		}
	}
	return nil, ""
}

// rule measures a rule after its dependencies have been measured.
func (g *growth) rule(rule *ast.Rule) (copies, path int) {
	vars := map[ast.Var]int{}
	path = g.body(rule.Body, vars)
	for _, head := range []*ast.Term{rule.Head.Key, rule.Head.Value} {
		if head != nil {
			copies += g.term(head, vars)
			path += g.within(head, vars)
		}
	}
	copies, path = saturate(copies), saturate(path)
	g.copies[rule], g.paths[rule] = copies, path
	return copies, path
}

const saturated = 1 << 30

func saturate(n int) int { return min(n, saturated) }

// body returns the length of the path, and stores the sizes of the variables in vars.
func (g *growth) body(body ast.Body, vars map[ast.Var]int) int {
	path := 0
	for _, expr := range body {
		path = saturate(path + 1 + g.within(expr, vars))
		switch terms := expr.Terms.(type) {
		case []*ast.Term:
			if expr.IsEquality() {
				left, right := g.term(terms[1], vars), g.term(terms[2], vars)
				g.assign(terms[1], right, vars)
				g.assign(terms[2], left, vars)
				continue
			}
			size := 1
			if ref, ok := terms[0].Value.(ast.Ref); ok && IsFunctionOfPolicy(terms[0]) {
				size = g.largest(ref, g.copies)
			}
			g.assign(terms[len(terms)-1], size, vars)
		case *ast.Every:
			size := g.term(terms.Domain, vars)
			if terms.Key != nil {
				g.assign(terms.Key, 1, vars)
			}
			g.assign(terms.Value, size, vars)
			path = saturate(path + g.body(terms.Body, vars))
		}
	}
	return path
}

// within returns the length of the paths of everything that an expression or a term evaluates.
func (g *growth) within(node any, vars map[ast.Var]int) int {
	path := 0
	ast.NewGenericVisitor(func(node any) bool {
		switch x := node.(type) {
		case *ast.ArrayComprehension:
			path += g.body(x.Body, vars) + g.within(x.Term, vars)
			return true
		case *ast.SetComprehension:
			path += g.body(x.Body, vars) + g.within(x.Term, vars)
			return true
		case *ast.ObjectComprehension:
			path += g.body(x.Body, vars) + g.within(x.Key, vars) + g.within(x.Value, vars)
			return true
		case *ast.Every:
			path += g.within(x.Domain, vars)
			return true
		case ast.Ref:
			path += g.largest(x, g.paths)
		}
		path = saturate(path)
		return false
	}).Walk(node)
	return path
}

// assign sets the size of variables in a pattern that have no size yet to the size of the value that they are taken from.
func (g *growth) assign(pattern *ast.Term, size int, vars map[ast.Var]int) {
	ast.WalkVars(pattern, func(v ast.Var) bool {
		if _, known := vars[v]; !known {
			vars[v] = max(size, 1)
		}
		return false
	})
}

// term returns how many copies of values a term consists of.
func (g *growth) term(term *ast.Term, vars map[ast.Var]int) int {
	size := 0
	add := func(part *ast.Term) { size = saturate(size + g.term(part, vars)) }
	switch x := term.Value.(type) {
	case ast.Var:
		return max(vars[x], 1)
	case ast.Ref:
		if IsFunctionOfPolicy(term) {
			return max(g.largest(x, g.copies), 1)
		}
		return g.term(x[0], vars)
	case *ast.Array:
		if !term.IsGround() {
			x.Foreach(add)
		}
	case ast.Set:
		if !term.IsGround() {
			x.Foreach(add)
		}
	case ast.Object:
		if !term.IsGround() {
			x.Foreach(func(key, value *ast.Term) { add(key); add(value) })
		}
	case *ast.ArrayComprehension:
		add(x.Term)
	case *ast.SetComprehension:
		add(x.Term)
	case *ast.ObjectComprehension:
		add(x.Key)
		add(x.Value)
	}
	return size
}

func (g *growth) largest(ref ast.Ref, of map[*ast.Rule]int) int {
	if len(ref) == 0 || !ref[0].Equal(ast.DefaultRootDocument) {
		return 0
	}
	largest := 0
	for _, rule := range g.rules(ref) {
		for r := rule; r != nil; r = r.Else {
			largest = max(largest, of[r])
		}
	}
	return largest
}
