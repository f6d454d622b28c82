package rego

import (
	"context"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/vmstencil/stencil/rego/internal/sandbox"
)

// The limits for all constants of a policy together.
const (
	maxConstantSteps = 1 << 14
	maxConstantTime  = 100 * time.Millisecond
)

// constantRules returns the names of the policy's rules that depend on its parameters and its data alone, without the data that depends on the object
// that is evaluated.
func constantRules(module *ast.Module, compiler *ast.Compiler, perObject map[string]map[string]any) []string {
	depends := dependencies{compiler: compiler, perObject: perObject, known: map[*ast.Rule]bool{}}
	var (
		result []string
		seen   = map[string]bool{}
	)
	for _, rule := range module.Rules {
		name := ruleName(rule)
		if seen[name] || name == entryDeny || name == entryWarn || len(rule.Head.Args) > 0 {
			continue
		}
		seen[name] = true
		constant := true
		for _, compiled := range compiler.GetRulesDynamicWithOpts(policyPackage.Append(ast.StringTerm(name)), ast.RulesOptions{IncludeHiddenModules: true}) {
			constant = constant && len(compiled.Head.Ref()) == 1 && !depends.onInput(compiled)
		}
		if constant {
			result = append(result, name)
		}
	}
	return result
}

// dependencies finds what rules depend on.
type dependencies struct {
	compiler  *ast.Compiler
	perObject map[string]map[string]any
	known     map[*ast.Rule]bool
}

// onInput reports whether a rule depends on the input. It follows the references of the rule; there are no cycles.
func (d *dependencies) onInput(rule *ast.Rule) bool {
	if depends, ok := d.known[rule]; ok {
		return depends
	}
	depends := false
	ast.WalkTerms(rule, func(term *ast.Term) bool {
		switch value := term.Value.(type) {
		case ast.Var:
			depends = depends || value.Equal(ast.InputRootDocument.Value)
		case ast.Ref:
			depends = depends || d.isPerObject(value)
			if !sandbox.IsFunctionOfPolicy(term) {
				break
			}
			for _, used := range d.compiler.GetRulesDynamicWithOpts(value, ast.RulesOptions{IncludeHiddenModules: true}) {
				depends = depends || used == rule || d.onInput(used)
			}
		}
		return depends
	})
	d.known[rule] = depends
	return depends
}

// isPerObject reports whether a reference may be to data that depends on the object that is evaluated.
func (d *dependencies) isPerObject(ref ast.Ref) bool {
	if len(d.perObject) == 0 || len(ref) < 2 || !ref[0].Equal(ast.DefaultRootDocument) || !ref[1].Equal(clusterTerm) {
		return false
	}
	if len(ref) == 2 {
		return true
	}
	name, constant := ref[2].Value.(ast.String)
	return !constant || d.perObject[string(name)] != nil
}

// fold evaluates the constant rules once. Rules that fail or take long are evaluated for each input instead.
func (p *Policy) fold() {
	p.constants = map[ast.String]*ast.Term{}
	ctx, cancel := context.WithTimeout(context.Background(), maxConstantTime)
	defer cancel()
	spent := sandbox.NewBudget(ctx, p.weight+p.dataWeight, p.patterns)
	spent.LimitSteps(maxConstantSteps)
	for _, name := range p.program.constant {
		value := ast.VarTerm("value")
		ref := policyPackage.Append(ast.StringTerm(name))
		query := p.query(ast.NewBody(ast.Equality.Expr(value, ast.NewTerm(ref))), ast.ObjectTerm(), spent)
		var found *ast.Term
		err := query.WithVirtualCache(&sandbox.Results{VirtualCache: topdown.NewVirtualCache(), Budget: spent, Constants: p.constants}).
			Iter(ctx, func(result topdown.QueryResult) error {
				found = result["value"]
				return nil
			})
		if spent.Err() != nil {
			return
		}
		if err == nil {
			p.constants[ast.String(name)] = found // nil: undefined
		}
	}
}
