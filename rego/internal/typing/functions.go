package typing

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// function is a function of the policy, with the calls that are known.
type function struct {
	name   string
	rules  []*ast.Rule
	copies []*functionCopy
	// unknown is true if it is called with values of unknown types, so that no mistake in it is one in all calls.
	unknown bool
}

// bodies returns the number of bodies of the function.
func (f *function) bodies() (count int) {
	for _, rule := range f.rules {
		for r := rule; r != nil; r = r.Else {
			count++
		}
	}
	return count
}

// functionCopy is a function for the types of one call.
type functionCopy struct {
	file  string
	types []types.Type
	// origins are the documents that the arguments are, by their index.
	origins []string
	// guarded is true if the caller checks the types of values itself.
	guarded bool
}

// guardedFile is the file of the bodies of functions that check the types of arguments themselves. Mistakes there are none: the body is for arguments of
// other types.
const guardedFile = "guarded"

func (f *functionCopy) same(found []types.Type, origins []string, guarded bool) bool {
	return f.guarded == guarded && slices.Equal(f.origins, origins) && slices.EqualFunc(f.types, found, func(a, b types.Type) bool { return types.Compare(a, b) == 0 })
}

// called returns the function of the policy that an expression calls.
func (c *checker) called(expr *ast.Expr) *function {
	return c.functions[expr.Operator().String()]
}

// call finds out the types of the arguments, and checks the function for them.
func (c *checker) call(s scope, expr *ast.Expr, f *function) {
	count := len(f.rules[0].Head.Args)
	operands := expr.Operands()
	if len(operands) < count {
		f.unknown = true
		return
	}
	arguments := operands[:count]
	var probe string
	probe = c.probe(s, func(found []types.Type) { c.copy(probe, s, arguments, f, found) }, arguments...)
	f.unknown = f.unknown || probe == ""
}

// copy adds the bodies of a function with the arguments of a probe. found is nil if their types are unknown.
func (c *checker) copy(probe string, caller scope, arguments []*ast.Term, f *function, found []types.Type) {
	origins := make([]string, len(arguments))
	resolved := make([]ast.Ref, len(arguments))
	for i, argument := range arguments {
		if resolved[i] = caller.origin(argument); resolved[i] != nil {
			origins[i] = resolved[i].String()
		}
	}
	if slices.ContainsFunc(f.copies, func(other *functionCopy) bool { return other.same(found, origins, caller.guarded) }) {
		return
	}
	if len(f.copies) >= maxCopies || len(c.added)+f.bodies() > maxAdded || !slices.ContainsFunc(found, isKnown) {
		f.unknown = true
		return
	}
	one := &functionCopy{file: f.name + " for " + probe, types: found, origins: origins, guarded: caller.guarded}
	f.copies = append(f.copies, one)
	element := ast.VarTerm("element of " + probe)
	for _, rule := range f.rules {
		for r := rule; r != nil; r = r.Else {
			if r.Default {
				continue
			}
			s := scope{file: one.file, guarded: caller.guarded, origins: map[ast.Var]ast.Ref{}}
			if slices.ContainsFunc(r.Body, isGuard) {
				s.file = guardedFile
			}
			copied := &ast.Rule{Head: r.Head, Body: r.Body}
			copied = relocated(copied.Copy(), s.file)
			s.body = append(s.body, ast.NewExpr(ast.NewTerm(c.Package.Append(ast.StringTerm(probe)).Append(element))))
			for i, argument := range copied.Head.Args {
				s.body = append(s.body, ast.Equality.Expr(argument, ast.RefTerm(element, ast.NumberTerm(jsonNumber(i)))))
				if name, ok := argument.Value.(ast.Var); ok && resolved[i] != nil {
					s.origins[name] = resolved[i]
				}
			}
			s.body = append(s.body, copied.Body...)
			c.added = append(c.added, newRule(fmt.Sprintf("copy %d", len(c.added)), copied.Head.Value, s.body))
			c.body(s, copied.Body)
		}
	}
}

// spread makes functions unknown that unknown ones call.
func (c *checker) spread() {
	for again := true; again; {
		again = false
		for _, f := range c.functions {
			if !f.unknown {
				continue
			}
			for _, rule := range f.rules {
				ast.WalkExprs(rule, func(expr *ast.Expr) bool {
					if expr.IsCall() {
						if called := c.called(expr); called != nil && !called.unknown {
							called.unknown, again = true, true
						}
					}
					return false
				})
			}
		}
	}
}

// isKnown reports whether anything is known of a type.
func isKnown(t types.Type) bool { return t != nil && types.Compare(t, types.A) != 0 }

// relocated gives the nodes of a rule locations in a file of that name, in the same rows and columns.
func relocated(rule *ast.Rule, file string) *ast.Rule {
	move := func(at *ast.Location) *ast.Location {
		if at == nil {
			return nil
		}
		moved := *at
		moved.File = file
		return &moved
	}
	ast.NewGenericVisitor(func(node any) bool {
		switch x := node.(type) {
		case *ast.Rule:
			x.Location = move(x.Location)
		case *ast.Head:
			x.Location = move(x.Location)
		case *ast.Expr:
			x.Location = move(x.Location)
		case *ast.Every:
			x.Location = move(x.Location)
		case *ast.Term:
			x.Location = move(x.Location)
		}
		return false
	}).Walk(rule)
	return rule
}
