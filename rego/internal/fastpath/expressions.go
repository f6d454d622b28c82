package fastpath

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/vmstencil/stencil/rego/internal/sandbox"
)

// unknown is an expression that only OPA decides.
var unknown = []step{{kind: stepUnknown}}

// expr translates an expression, and adds the variables that it binds.
func (s *scope) expr(expr *ast.Expr, bound ast.VarSet) []step {
	if len(expr.With) > 0 {
		return unknown
	}
	if expr.Negated {
		positive := *expr
		positive.Negated = false
		// What is bound inside a negation is not bound outside.
		return []step{{kind: stepNot, inner: &body{steps: s.expr(&positive, bound.Copy()), end: endFound}}}
	}
	switch terms := expr.Terms.(type) {
	case *ast.Term:
		return s.term(terms, bound)
	case *ast.Every:
		return s.every(terms, bound)
	case []*ast.Term:
		switch {
		case expr.IsEquality():
			return s.equality(terms[1], terms[2], bound)
		case sandbox.IsFunctionOfPolicy(terms[0]):
			return s.call(terms, bound)
		default:
			return s.builtin(terms, bound)
		}
	}
	return unknown
}

// term translates an expression that holds unless it is false or undefined.
func (s *scope) term(term *ast.Term, bound ast.VarSet) []step {
	if ref, ok := term.Value.(ast.Ref); ok {
		if r, ok := s.reference(ref, bound); ok {
			return []step{{kind: stepReference, ref: r}}
		}
		return unknown
	}
	if o, ok := s.operand(term, bound); ok {
		return []step{{kind: stepValue, operand: o}}
	}
	return unknown
}

// equality translates a = b.
func (s *scope) equality(a, b *ast.Term, bound ast.VarSet) []step {
	refA, isRefA := a.Value.(ast.Ref)
	refB, isRefB := b.Value.(ast.Ref)
	switch {
	case isRefA && isRefB:
		first, ok := s.reference(refA, bound)
		if !ok {
			return unknown
		}
		second, ok := s.reference(refB, bound)
		if !ok {
			return unknown
		}
		slot := s.next
		s.next++
		return []step{
			{kind: stepReference, ref: first, target: pattern{kind: patternBind, slot: slot}},
			{kind: stepReference, ref: second, target: pattern{kind: patternEqual, operand: operand{kind: operandVariable, slot: slot}}},
		}
	case isRefA:
		a, refB = b, refA
		fallthrough
	case isRefB:
		r, ok := s.reference(refB, bound)
		if !ok {
			return unknown
		}
		target, ok := s.pattern(a, bound)
		if !ok {
			return unknown
		}
		return []step{{kind: stepReference, ref: r, target: target}}
	case isComprehension(a):
		a, b = b, a
		fallthrough
	case isComprehension(b):
		return s.comprehension(b, a, bound)
	}
	if o, ok := s.operand(a, bound); ok {
		return s.unification(b, o, bound)
	}
	if o, ok := s.operand(b, bound); ok {
		return s.unification(a, o, bound)
	}
	return unknown
}

func (s *scope) unification(with *ast.Term, value operand, bound ast.VarSet) []step {
	target, ok := s.pattern(with, bound)
	if !ok {
		return unknown
	}
	return []step{{kind: stepValue, operand: value, target: target}}
}

func isComprehension(term *ast.Term) bool {
	switch term.Value.(type) {
	case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
		return true
	}
	return false
}

func (s *scope) comprehension(term, with *ast.Term, bound ast.VarSet) []step {
	if s.compiler.ComprehensionIndex(term) != nil {
		// OPA evaluates it once for all values of the variables around it, which can fail where it would not for the present ones.
		return unknown
	}
	made := step{kind: stepComprehension}
	within := bound.Copy()
	switch c := term.Value.(type) {
	case *ast.ArrayComprehension:
		made.inner = s.body(c.Body, within, endArray, c.Term, nil)
	case *ast.SetComprehension:
		made.inner = s.body(c.Body, within, endSet, c.Term, nil)
	case *ast.ObjectComprehension:
		made.inner = s.body(c.Body, within, endObject, c.Value, c.Key)
	default:
		return unknown
	}
	var ok bool
	if made.target, ok = s.pattern(with, bound); !ok {
		return unknown
	}
	return []step{made}
}

func (s *scope) every(e *ast.Every, bound ast.VarSet) []step {
	made := step{kind: stepEvery, key: -1}
	within := bound.Copy()
	var ok bool
	if made.operand, ok = s.operand(e.Domain, bound); !ok {
		return unknown
	}
	if e.Key != nil {
		key, ok := e.Key.Value.(ast.Var)
		if !ok {
			return unknown
		}
		within.Add(key)
		made.key = s.slot(key)
	}
	value, ok := e.Value.Value.(ast.Var)
	if !ok {
		return unknown
	}
	within.Add(value)
	made.value = s.slot(value)
	made.inner = s.body(e.Body, within, endFound, nil, nil)
	return []step{made}
}

// call translates the call of a function of the policy or of data.lib.
func (s *scope) call(terms []*ast.Term, bound ast.VarSet) []step {
	ref, _ := terms[0].Value.(ast.Ref)
	f := s.function(ref)
	if f.unknown {
		return unknown
	}
	arity := len(f.clauses[0].args)
	made := step{kind: stepFunction, function: f}
	for _, c := range f.clauses {
		for ; c != nil; c = c.otherwise {
			if len(c.args) != arity {
				return unknown
			}
		}
	}
	return s.arguments(made, terms[1:], arity, bound)
}

func (s *scope) builtin(terms []*ast.Term, bound ast.VarSet) []step {
	name := terms[0].String()
	made := step{kind: stepBuiltin, fast: fastBuiltins[name]}
	var declared *ast.Builtin
	if own := s.builtins[name]; own != nil {
		declared, made.builtin = own.Decl, own.Func
	} else {
		declared, made.builtin = ast.BuiltinMap[name], topdown.GetBuiltin(name)
	}
	if declared == nil || made.builtin == nil || declared.Decl.Result() == nil || declared.Nondeterministic {
		return unknown
	}
	made.many = declared.Relation
	return s.arguments(made, terms[1:], declared.Decl.Arity(), bound)
}

// arguments adds the arguments of a call, and what its result is unified with.
func (s *scope) arguments(made step, terms []*ast.Term, arity int, bound ast.VarSet) []step {
	if len(terms) != arity && len(terms) != arity+1 {
		return unknown
	}
	var ok bool
	if made.args, ok = s.operands(terms[:arity], bound); !ok {
		return unknown
	}
	if len(terms) > arity {
		made.output = terms[arity]
		if made.target, ok = s.pattern(made.output, bound); !ok {
			return unknown
		}
	}
	return []step{made}
}
