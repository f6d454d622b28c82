package rego

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/vmstencil/stencil/rego/internal/sandbox"
)

// The names of the entry rules.
const (
	entryDeny = "deny"
	entryWarn = "warn"
)

var entries = []string{entryDeny, entryWarn}

// shape checks the form of a policy before it is compiled, and puts it into the package in which policies are evaluated.
type shape struct {
	source
	module *ast.Module
	// helpers are the names that policies may use of data.lib.
	helpers map[string]bool
	// aliases are the imports of documents in data, by the name they have here.
	aliases  map[ast.Var]ast.Ref
	own      ast.Ref // the package as its author calls it
	rules    map[string]bool
	problems []Problem
	// parameters are the names of the policy's parameters.
	parameters map[string]bool
	// bare is set when the policy has neither parameters nor a schema of them.
	bare bool
	// data are the names of the values that the policy declares; nil if it declares none.
	data map[string]bool
	// test is set when the module is a test, which may replace input and has no entries.
	test bool
}

// policyPackage is the package of every policy. Policies are separate in it, since each has a compiler of its own.
var policyPackage = ast.Ref{ast.DefaultRootDocument, sandbox.PolicyTerm}

func (s *shape) add(code string, location *ast.Location, format string, arguments ...any) {
	s.problems = append(s.problems, s.at(code, location, format, arguments...))
}

func (s *shape) check() {
	s.own = s.module.Package.Path
	s.rules = map[string]bool{}
	for _, rule := range s.module.Rules {
		s.rules[ruleName(rule)] = true
	}
	if len(s.own) > 1 && (s.own[1].Equal(sandbox.LibTerm) || s.own[1].Equal(parametersTerm) || s.data != nil && s.own[1].Equal(clusterTerm)) {
		s.add(CodeReference, s.module.Package.Location, "package %s is taken; call the package something else", s.packageName())
	}
	if !s.test {
		s.checkEntries()
	}
	s.checkImports()
	s.checkAnnotations()
	for _, rule := range s.module.Rules {
		s.checkReferences(rule)
		s.checkNesting(rule, 0)
	}
	s.checkParameters()
}

// checkParameters finds parameters that are read from input in place of data, and parameters of a policy without any.
func (s *shape) checkParameters() {
	read, misplaced := map[string]bool{}, map[string]*ast.Location{}
	for _, rule := range s.module.Rules {
		ast.WalkRefs(rule, func(ref ast.Ref) bool {
			if full, ok := s.resolved(ref); ok && len(full) > 2 && full[1].Equal(parametersTerm) {
				name, named := nameAt(full, 2)
				read[name] = true
				if s.bare && named {
					at := max(0, len(ref)-len(full)+2)
					s.add(CodeReference, ref[at].Location, "data.parameters has no %q: the policy has neither parameters nor parametersSchema", name)
				}
			}
			if name, ok := nameAt(ref, 2); ok && ref[0].Equal(ast.InputRootDocument) && ref[1].Equal(parametersTerm) && s.parameters[name] && misplaced[name] == nil {
				misplaced[name] = ref[2].Location
			}
			return false
		})
	}
	for name, location := range misplaced {
		if !read[name] {
			s.add(CodeReference, location, "input.parameters are those of the template; write data.parameters.%s for the parameter of the policy", name)
		}
	}
}

func (s *shape) packageName() string {
	return strings.TrimPrefix(s.own.String(), "data.")
}

// ruleName is the first part of a rule's name, which is what others refer to.
func ruleName(rule *ast.Rule) string {
	ref := rule.Head.Ref()
	if len(ref) == 0 {
		return ""
	}
	switch name := ref[0].Value.(type) {
	case ast.Var:
		return string(name)
	case ast.String:
		return string(name)
	}
	return ""
}

func (s *shape) checkEntries() {
	found := false
	for _, rule := range s.module.Rules {
		name := ruleName(rule)
		if !slices.Contains(entries, name) {
			continue
		}
		found = true
		head := rule.Head
		switch {
		case rule.Default:
			s.add(CodeEntry, rule.Location, "%s must not have a default: it is empty when nothing is found", name)
		case len(head.Args) > 0:
			s.add(CodeEntry, rule.Location, "%s is a function; write: %s contains message if { … }", name, name)
		case len(head.Ref()) > 1 || head.RuleKind() != ast.MultiValue:
			s.add(CodeEntry, rule.Location, "%s must be a set of messages; write: %s contains message if { … }", name, name)
		}
	}
	if found {
		return
	}
	hint := ""
	if s.rules["violation"] {
		hint = "; what Gatekeeper calls violation is called deny here"
	}
	s.add(CodeEntry, s.module.Package.Location, "the policy has neither a rule deny nor a rule warn%s", hint)
}

func (s *shape) checkImports() {
	s.aliases = map[ast.Var]ast.Ref{}
	for _, imported := range s.module.Imports {
		path, ok := imported.Path.Value.(ast.Ref)
		if !ok || len(path) == 0 || !path[0].Equal(ast.DefaultRootDocument) {
			continue
		}
		s.checkData(path, true)
		s.aliases[imported.Name()] = path
	}
}

// checkReferences finds references to data that policies cannot read. They would be undefined, and a rule that depends on an undefined value never
// fires.
func (s *shape) checkReferences(node any) {
	ast.NewGenericVisitor(func(node any) bool {
		switch x := node.(type) {
		case *ast.Expr:
			switch x.Terms.(type) {
			case *ast.Term, []*ast.Term, *ast.SomeDecl, *ast.Every:
			default:
				s.add(CodeParse, x.Location, "this is not part of Rego v1")
			}
			if len(x.With) > 0 && !s.test {
				s.add(CodeReference, x.With[0].Location, "with is for tests; a policy cannot replace its input")
			}
		case ast.Ref:
			if full, ok := s.resolved(x); ok {
				s.checkData(full, false)
			}
			for _, term := range x[1:] {
				s.checkReferences(term)
			}
			return true
		case *ast.Term:
			if v, ok := x.Value.(ast.Var); ok {
				if full, ok := s.resolved(ast.Ref{{Value: v, Location: x.Location}}); ok {
					s.checkData(full, false)
				}
			}
		}
		return false
	}).Walk(node)
}

// resolved replaces the import at the beginning of a reference.
func (s *shape) resolved(ref ast.Ref) (ast.Ref, bool) {
	head, ok := ref[0].Value.(ast.Var)
	if !ok {
		return nil, false
	}
	if ref[0].Equal(ast.DefaultRootDocument) {
		return ref, true
	}
	path, imported := s.aliases[head]
	if !imported {
		return nil, false
	}
	full := append(ast.Ref{}, path...)
	full[0] = &ast.Term{Value: path[0].Value, Location: ref[0].Location}
	return append(full, ref[1:]...), true
}

func (s *shape) checkData(ref ast.Ref, imported bool) {
	location := ref[0].Location
	switch {
	case len(ref) > 1 && ref[1].Equal(parametersTerm):
	case len(ref) > 1 && ref[1].Equal(sandbox.LibTerm):
		switch name, ok := nameAt(ref, 2); {
		case len(ref) == 2 && imported:
		case !ok:
			s.add(CodeReference, location, "name one helper: data.lib.NAME")
		case !s.helpers[name]:
			s.add(CodeReference, location, "data.lib has no %s%s", name, suggestion(name, s.helpers))
		}
	case len(ref) > 1 && ref[1].Equal(clusterTerm) && (s.data != nil || !ref.HasPrefix(s.own)) && !s.test:
		switch name, ok := nameAt(ref, 2); {
		case s.data == nil:
			s.add(CodeReference, location, "the policy declares no data; add to spec.data what it reads as %s", ref.GroundPrefix())
		case len(ref) == 2 && imported:
		case !ok:
			s.add(CodeReference, location, "name one value: data.cluster.NAME")
		case !s.data[name]:
			s.add(CodeReference, location, "spec.data has no entry %s%s", name, suggestion(name, s.data))
		}
	case ref.HasPrefix(s.own):
		switch name, ok := nameAt(ref, len(s.own)); {
		case len(ref) == len(s.own) && imported:
		case !ok:
			s.add(CodeReference, location, "name one rule: %s.NAME", s.own)
		case !s.rules[name] && !s.test:
			s.add(CodeReference, location, "the policy has no rule %s%s", name, suggestion(name, s.rules))
		}
	case s.test:
	default:
		s.add(CodeReference, location, "%s does not exist: a policy sees its own package, data.parameters and data.lib", ref.GroundPrefix())
	}
}

func nameAt(ref ast.Ref, i int) (string, bool) {
	if i >= len(ref) {
		return "", false
	}
	name, ok := ref[i].Value.(ast.String)
	return string(name), ok
}

func (s *shape) checkAnnotations() {
	for _, annotations := range s.module.Annotations {
		if len(annotations.Schemas) > 0 {
			s.add(CodeMetadata, annotations.Location, "schemas are not supported in policies: input has KubeVirt's types, and parametersSchema describes the parameters")
		}
	}
}

// checkNesting finds comprehensions that are nested too deeply.
func (s *shape) checkNesting(node any, depth int) {
	ast.NewGenericVisitor(func(inner any) bool {
		if inner == node {
			return false
		}
		var location *ast.Location
		switch x := inner.(type) {
		case *ast.ArrayComprehension:
			location = x.Term.Location
		case *ast.SetComprehension:
			location = x.Term.Location
		case *ast.ObjectComprehension:
			location = x.Key.Location
		case *ast.Every:
			location = x.Location
		default:
			return false
		}
		if depth+1 > MaxComprehensionDepth {
			s.problems = append(s.problems, s.at(CodeLimit, location, "comprehensions are nested more than %d deep", MaxComprehensionDepth))
			return true
		}
		s.checkNesting(inner, depth+1)
		return true
	}).Walk(node)
}

// move puts the module into the package of policies.
func (s *shape) move() {
	rename := func(ref ast.Ref) ast.Ref {
		if !ref.HasPrefix(s.own) {
			return ref
		}
		moved := append(ast.Ref{{Value: ref[0].Value, Location: ref[0].Location}}, policyPackage[1:]...)
		return append(moved, ref[len(s.own):]...)
	}
	for _, imported := range s.module.Imports {
		if path, ok := imported.Path.Value.(ast.Ref); ok {
			if imported.Alias == "" && len(path) == len(s.own) && path.HasPrefix(s.own) {
				imported.Alias = imported.Name()
			}
			imported.Path.Value = rename(path)
		}
	}
	for _, rule := range s.module.Rules {
		ast.WalkTerms(rule, func(term *ast.Term) bool {
			if ref, ok := term.Value.(ast.Ref); ok {
				term.Value = rename(ref)
			}
			return false
		})
	}
	s.module.Package.Path = policyPackage
}

// suggestion returns a similar name from those that exist.
func suggestion(name string, known map[string]bool) string {
	return didYouMean(name, slices.Sorted(maps.Keys(known)))
}

// didYouMean is suggestion for names in order, of which the first counts if several are as similar.
func didYouMean(name string, names []string) string {
	if best := closest(name, names); best != "" {
		return fmt.Sprintf("; did you mean %s?", best)
	}
	return ""
}

// closest returns the most similar name, if it differs little.
func closest(name string, names []string) string {
	best, least := "", len(name)/3+2
	for _, candidate := range names {
		if d := distance(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance is how many letters have to be inserted, removed or changed.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
