package typing

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// The limits of one policy. What is beyond them is not checked.
const (
	// maxRounds is how deeply functions that call each other are followed.
	maxRounds = 4
	// maxProbes is the number of probes, maxContext that of the expressions in the body of one.
	maxProbes  = 200
	maxContext = 60
	// maxCopies is the number of types for which one function is checked, maxAdded that of all probes and bodies of copies.
	maxCopies = 8
	maxAdded  = 400
)

// Finding is a mistake.
type Finding struct {
	Location *ast.Location
	Message  string
	// Err is the error of OPA's type checker; nil for a mistake with a message.
	Err *ast.Error
}

// Input is what Check needs of a compilation.
type Input struct {
	// Policy is the compiled module, with the rules in Package and the types in Types.
	Policy  *ast.Module
	Package ast.Ref
	Types   *ast.TypeEnv
	// Compile returns the types of a module whose rules consist of parts of compiled ones, and the errors of the type checker. It fails if something
	// else is wrong with the module.
	Compile func(*ast.Module) (*ast.TypeEnv, []*ast.Error, error)
	// Entries are the names of the rules that contain findings.
	Entries []string
	// Kinds are the kinds of input.object.
	Kinds []string
	// Suggest returns a similar value in the form of a message, or nothing.
	Suggest func(value string, values []string) string
}

// scope is a body in which terms are probed: that of a rule with those around a comprehension in it, or the copy of a function.
type scope struct {
	body ast.Body
	// file of the locations in the copy of a function, empty in a rule.
	file string
	// guarded is true if the body checks the types of values itself.
	guarded bool
	// origins are the documents that the arguments of a function are.
	origins map[ast.Var]ast.Ref
}

// checker collects the probes of a policy, and what they find.
type checker struct {
	Input
	functions map[string]*function
	// added are the probes and copies; compiled is the number of those that were compiled.
	added    []*ast.Rule
	compiled int
	probes   []*probe
	findings map[string][]Finding // by the file of the location
}

// probe is a rule whose elements are arrays of the values of some terms.
type probe struct {
	name  string
	terms []*ast.Term
	// check receives the types of the terms, nil if they are unknown; done is set after that.
	check func([]types.Type)
	done  bool
}

// Check returns the mistakes in a policy that compiles.
func Check(in Input) []Finding {
	c := &checker{Input: in, functions: map[string]*function{}, findings: map[string][]Finding{}}
	for _, rule := range in.Policy.Rules {
		if len(rule.Head.Args) == 0 {
			continue
		}
		// A name can have several parts, as in sizes.large(vm).
		name := rule.Ref().String()
		if c.functions[name] == nil {
			c.functions[name] = &function{name: name}
		}
		c.functions[name].rules = append(c.functions[name].rules, rule)
	}
	for _, rule := range in.Policy.Rules {
		for r := rule; r != nil; r = r.Else {
			if len(r.Head.Args) == 0 && !r.Default {
				c.rule(r)
			}
		}
	}
	for range maxRounds {
		if !c.round() {
			break
		}
	}
	for _, p := range c.probes {
		if !p.done {
			p.check(nil)
		}
	}
	c.spread()
	return c.result()
}

// round compiles with what was added, and gives the probes their types. It returns whether that added more.
func (c *checker) round() bool {
	if len(c.added) == c.compiled {
		return false
	}
	c.compiled = len(c.added)
	pending := slices.DeleteFunc(slices.Clone(c.probes), func(p *probe) bool { return p.done })
	env, errs, err := c.Compile(newModule(c.Policy.Package, c.added))
	if err != nil {
		return false
	}
	for _, err := range errs {
		if err.Location != nil && err.Location.File != guardedFile {
			c.find(scope{file: c.fileOf(err.Location)}, Finding{Location: err.Location, Err: err})
		}
	}
	for _, p := range pending {
		p.done = true
		p.check(elements(env.GetByRef(c.Package.Append(ast.StringTerm(p.name))), len(p.terms)))
	}
	return true
}

// newModule returns a module with copies of rules.
func newModule(pkg *ast.Package, rules []*ast.Rule) *ast.Module {
	module := &ast.Module{Package: pkg}
	module.SetRegoVersionSpan(ast.RegoVersionSpanOf(ast.RegoV1))
	for _, rule := range rules {
		copied := rule.Copy()
		copied.Module = module
		module.Rules = append(module.Rules, copied)
	}
	return module
}

// elements returns the types of the elements of the arrays in a set.
func elements(t types.Type, count int) []types.Type {
	set, ok := t.(*types.Set)
	if !ok {
		return nil
	}
	array, ok := set.Of().(*types.Array)
	if !ok || array.Len() != count {
		return nil
	}
	found := make([]types.Type, count)
	for i := range found {
		found[i] = array.Select(i)
	}
	return found
}

// find records a mistake, once.
func (c *checker) find(s scope, f Finding) {
	if !c.has(s.file, f) {
		c.findings[s.file] = append(c.findings[s.file], f)
	}
}

// fileOf returns the file of a copy, and nothing for locations in the policy.
func (c *checker) fileOf(at *ast.Location) string {
	for _, f := range c.functions {
		for _, one := range f.copies {
			if one.file == at.File {
				return one.file
			}
		}
	}
	return ""
}

// withTypes gives check the types of terms, with a probe if they are not known without it.
func (c *checker) withTypes(s scope, check func([]types.Type), terms ...*ast.Term) {
	known := make([]types.Type, len(terms))
	for i, term := range terms {
		if known[i] = c.typeOf(s, term); known[i] == nil {
			c.probe(s, check, terms...)
			return
		}
	}
	check(known)
}

// probe adds a rule that has the types of terms in a scope.
func (c *checker) probe(s scope, check func([]types.Type), terms ...*ast.Term) (name string) {
	if len(c.probes) >= maxProbes || len(c.added) >= maxAdded || len(s.body) > maxContext {
		return ""
	}
	p := &probe{name: fmt.Sprintf("probe %d", len(c.probes)), terms: terms, check: check}
	c.probes = append(c.probes, p)
	c.added = append(c.added, newRule(p.name, ast.ArrayTerm(terms...), s.body))
	return p.name
}

// newRule returns a rule that is a set.
func newRule(name string, key *ast.Term, body ast.Body) *ast.Rule {
	head := &ast.Head{Name: ast.Var(name), Reference: ast.Ref{ast.VarTerm(name)}, Key: key.Copy(), Location: key.Location}
	rule := &ast.Rule{Head: head, Body: body.Copy(), Location: body.Loc()}
	for i, expr := range rule.Body {
		expr.Index = i
	}
	return rule
}

// result returns the findings in rules, and those in functions that all calls of the function have in common.
func (c *checker) result() []Finding {
	all := c.findings[""]
	for _, f := range c.functions {
		if f.unknown || len(f.copies) == 0 {
			continue
		}
		for _, found := range c.findings[f.copies[0].file] {
			if !slices.ContainsFunc(f.copies[1:], func(other *functionCopy) bool { return !c.has(other.file, found) }) {
				all = append(all, found)
			}
		}
	}
	return all
}

func (c *checker) has(file string, wanted Finding) bool {
	return slices.ContainsFunc(c.findings[file], func(f Finding) bool {
		return f.Location.Row == wanted.Location.Row && f.Location.Col == wanted.Location.Col
	})
}
