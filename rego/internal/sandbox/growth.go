package sandbox

import (
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
)

// maxPath is how many expressions are evaluated inside each other: OPA evaluates the rest of a rule within the call of a function, so that the stack
// grows with every call.
const maxPath = 10_000

// growth estimates how deep the evaluation of rules goes, which is exponential in the number of rules that use each other twice.
type growth struct {
	rules func(ast.Ref) []*ast.Rule
	paths map[*ast.Rule]int
}

// Growth returns the first rule of which the evaluation would take too much stack, and why; nil if there is none.
func Growth(compiler *ast.Compiler) (rule *ast.Rule, why string) {
	g := &growth{rules: func(ref ast.Ref) []*ast.Rule {
		return compiler.GetRulesDynamicWithOpts(ref, ast.RulesOptions{IncludeHiddenModules: true})
	}, paths: map[*ast.Rule]int{}}
	sorted, _ := compiler.Graph.Sort()
	for _, node := range sorted {
		rule := node.(*ast.Rule)
		if g.rule(rule) > maxPath {
			return rule, fmt.Sprintf("the rules use each other so often that more than %d expressions are evaluated inside each other", maxPath)
		}
	}
	return nil, ""
}

// rule measures a rule after its dependencies have been measured.
func (g *growth) rule(rule *ast.Rule) int {
	path := g.body(rule.Body)
	for _, head := range []*ast.Term{rule.Head.Key, rule.Head.Value} {
		if head != nil {
			path += g.within(head)
		}
	}
	g.paths[rule] = saturate(path)
	return g.paths[rule]
}

const saturated = 1 << 30

func saturate(n int) int { return min(n, saturated) }

// body returns the length of the path.
func (g *growth) body(body ast.Body) int {
	path := 0
	for _, expr := range body {
		path = saturate(path + 1 + g.within(expr))
		if every, ok := expr.Terms.(*ast.Every); ok {
			path = saturate(path + g.body(every.Body))
		}
	}
	return path
}

// within returns the length of the paths of everything that an expression or a term evaluates.
func (g *growth) within(node any) int {
	path := 0
	ast.NewGenericVisitor(func(node any) bool {
		switch x := node.(type) {
		case *ast.ArrayComprehension:
			path += g.body(x.Body) + g.within(x.Term)
			return true
		case *ast.SetComprehension:
			path += g.body(x.Body) + g.within(x.Term)
			return true
		case *ast.ObjectComprehension:
			path += g.body(x.Body) + g.within(x.Key) + g.within(x.Value)
			return true
		case *ast.Every:
			path += g.within(x.Domain)
			return true
		case ast.Ref:
			path += g.longest(x)
		}
		path = saturate(path)
		return false
	}).Walk(node)
	return path
}

// longest returns the length of the longest path of the rules to which a reference may refer.
func (g *growth) longest(ref ast.Ref) int {
	if len(ref) == 0 || !ref[0].Equal(ast.DefaultRootDocument) {
		return 0
	}
	longest := 0
	for _, rule := range g.rules(ref) {
		for r := rule; r != nil; r = r.Else {
			longest = max(longest, g.paths[r])
		}
	}
	return longest
}
