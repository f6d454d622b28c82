package rego

import (
	"fmt"
	"slices"
	"sort"

	"github.com/open-policy-agent/opa/v1/ast"
)

// helpers are the modules of data.lib, parsed once. A policy is compiled with the rules that it uses.
type helpers struct {
	rules      map[string][]*ast.Rule // by name
	uses       map[string][]string    // names that the rules of a name mention
	documented map[string]bool
	pkg        *ast.Package
}

func newHelpers(sources map[string]string, capabilities *ast.Capabilities) (helpers, error) {
	h := helpers{rules: map[string][]*ast.Rule{}, uses: map[string][]string{}}
	var modules []*ast.Module
	names := make([]string, 0, len(sources))
	for name := range sources {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		module, err := ast.ParseModuleWithOpts("lib/"+name, sources[name], ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true, Capabilities: capabilities})
		if err != nil {
			return helpers{}, fmt.Errorf("the helpers of policies: %w", err)
		}
		modules = append(modules, module)
		h.pkg = module.Package
		for _, rule := range module.Rules {
			h.rules[ruleName(rule)] = append(h.rules[ruleName(rule)], rule)
		}
	}
	h.documented = helperNames(modules)
	for name, rules := range h.rules {
		for _, rule := range rules {
			for mentioned := range mentions(rule) {
				if h.rules[mentioned] != nil && !slices.Contains(h.uses[name], mentioned) {
					h.uses[name] = append(h.uses[name], mentioned)
				}
			}
		}
	}
	return h, nil
}

// mentions returns all names and texts in a node: a superset of what it refers to.
func mentions(node any) map[string]bool {
	found := map[string]bool{}
	ast.WalkTerms(node, func(term *ast.Term) bool {
		switch value := term.Value.(type) {
		case ast.Var:
			found[string(value)] = true
		case ast.String:
			found[string(value)] = true
		}
		return false
	})
	return found
}

// module returns data.lib with the rules that a policy needs, or nil when it needs none.
func (h helpers) module(policies ...*ast.Module) *ast.Module {
	needed := map[string]bool{}
	var need func(string)
	need = func(name string) {
		if needed[name] || h.rules[name] == nil {
			return
		}
		needed[name] = true
		for _, used := range h.uses[name] {
			need(used)
		}
	}
	usesLib := false
	for _, policy := range policies {
		for name := range mentions(policy) {
			if usesLib = usesLib || name == "lib"; h.documented[name] {
				need(name)
			}
		}
	}
	if !usesLib || len(needed) == 0 {
		return nil
	}
	module := &ast.Module{Package: h.pkg}
	module.SetRegoVersionSpan(ast.RegoVersionSpanOf(ast.RegoV1))
	names := make([]string, 0, len(needed))
	for name := range needed {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		module.Rules = append(module.Rules, h.rules[name]...)
	}
	return module
}
