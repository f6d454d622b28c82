package sandbox

import (
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
)

// maxHeadNodes is the number of nodes above which the head of an element of a set or a comprehension is composed by settle.
const maxHeadNodes = 32

// hardener changes compiled rules so that their evaluation is bounded: composed values are bound by settle, and bounded functions are called by their
// bounded names. It runs after all of OPA's stages, which use the original names.
//
// Values have to be bound because OPA binds a variable to the term [x, x] and not to its value. Thirty lines of y := [x, x] are a value of a billion
// nodes, composed, compared or printed at once, which nothing could interrupt.
type hardener struct {
	renamed map[string]*ast.Term
	next    int
	// rejected are the locations of unifications of two patterns, each of which binds variables.
	rejected []*ast.Location
}

// Harden changes rules after all of OPA's stages. It returns the locations of unifications that cannot be bounded.
func (s *Sandbox) Harden(rules []*ast.Rule) (rejected []*ast.Location) {
	h := &hardener{renamed: s.renamed}
	for _, rule := range rules {
		h.rule(rule)
	}
	return h.rejected
}

func (h *hardener) rule(rule *ast.Rule) {
	for r := rule; r != nil; r = r.Else {
		bound := ast.NewVarSet()
		for _, arg := range r.Head.Args {
			addVars(bound, arg)
		}
		body := h.body(r.Body, bound)
		partial := r.Head.RuleKind() == ast.MultiValue || !r.Ref().IsGround()
		r.Head.Value, body = h.head(r.Head.Value, body, bound, partial)
		r.Head.Key, body = h.head(r.Head.Key, body, bound, true)
		r.Body = body
	}
}

// head moves a composite head into the body, unless it is small and the head of an element.
func (h *hardener) head(term *ast.Term, body ast.Body, bound ast.VarSet, elements bool) (*ast.Term, ast.Body) {
	if term == nil || !isComposed(term) || !allBound(term, bound) {
		return term, body
	}
	if elements && nodes(term) <= maxHeadNodes {
		return term, body
	}
	value := h.variable(term)
	expr := bindExpr(term, value)
	expr.Location = term.Location
	return value, appendExpr(body, expr)
}

func (h *hardener) body(body ast.Body, bound ast.VarSet) ast.Body {
	var result ast.Body
	for _, expr := range body {
		h.closures(expr, bound)
		for _, expr := range h.expr(expr, bound) {
			result = appendExpr(result, expr)
		}
		if !expr.Negated {
			addVars(bound, expr)
		}
	}
	return result
}

func appendExpr(body ast.Body, expr *ast.Expr) ast.Body {
	expr.Index = len(body)
	return append(body, expr)
}

// closures hardens what is evaluated inside an expression.
func (h *hardener) closures(expr *ast.Expr, outside ast.VarSet) {
	inner := func(body ast.Body) (ast.Body, ast.VarSet) {
		bound := outside.Copy()
		return h.body(body, bound), bound
	}
	ast.NewGenericVisitor(func(node any) bool {
		switch x := node.(type) {
		case *ast.ArrayComprehension:
			body, bound := inner(x.Body)
			x.Term, x.Body = h.head(x.Term, body, bound, true)
			return true
		case *ast.SetComprehension:
			body, bound := inner(x.Body)
			x.Term, x.Body = h.head(x.Term, body, bound, true)
			return true
		case *ast.ObjectComprehension:
			body, bound := inner(x.Body)
			x.Key, body = h.head(x.Key, body, bound, true)
			x.Value, x.Body = h.head(x.Value, body, bound, true)
			return true
		case *ast.Every:
			within := outside.Copy()
			if x.Key != nil {
				addVars(within, x.Key)
			}
			addVars(within, x.Value)
			x.Body = h.body(x.Body, within)
			return true
		}
		return false
	}).Walk(expr)
}

// expr returns the expressions that replace one.
func (h *hardener) expr(expr *ast.Expr, bound ast.VarSet) []*ast.Expr {
	var before []*ast.Expr
	hoist := func(term *ast.Term) *ast.Term {
		value := h.variable(term)
		made := bindExpr(term, value)
		made.Location = expr.Location
		before = append(before, made)
		addVars(bound, value)
		return value
	}
	h.refHeads(expr, bound, hoist)
	switch terms := expr.Terms.(type) {
	case *ast.Every:
		if isComposed(terms.Domain) && allBound(terms.Domain, bound) {
			terms.Domain = hoist(terms.Domain)
		}
	case []*ast.Term:
		switch {
		case expr.IsEquality():
			return append(before, h.equality(expr, terms, bound, hoist)...)
		case IsFunctionOfPolicy(terms[0]):
			for i := 1; i < len(terms); i++ {
				if isComposed(terms[i]) && allBound(terms[i], bound) {
					terms[i] = hoist(terms[i])
				}
			}
		default:
			if renamed := h.renamed[terms[0].String()]; renamed != nil {
				located := *renamed
				located.Location = terms[0].Location
				terms[0] = &located
			}
		}
	}
	return append(before, expr)
}

// equality returns the expressions that replace a = b, except those that are hoisted.
func (h *hardener) equality(expr *ast.Expr, terms []*ast.Term, bound ast.VarSet, hoist func(*ast.Term) *ast.Term) []*ast.Expr {
	same := []*ast.Expr{expr}
	a, b := terms[1], terms[2]
	if isComposed(a) && isComposed(b) {
		switch {
		case allBound(b, bound):
			terms[2] = hoist(b)
		case allBound(a, bound):
			terms[1] = hoist(a)
		default:
			h.rejected = append(h.rejected, expr.Location)
		}
		return same
	}
	if isOpenRef(a) && isOpenRef(b) {
		// a[_] = b[_] would go through all pairs in one step.
		value := h.variable(a)
		before := ast.Equality.Expr(value, a)
		before.Location = expr.Location
		addVars(bound, before)
		terms[1] = value
		return []*ast.Expr{before, expr}
	}
	for i, side := range []*ast.Term{a, b} {
		other := terms[2-i]
		variable, isVar := side.Value.(ast.Var)
		if !isVar || bound.Contains(variable) || expr.Negated {
			continue
		}
		switch {
		case isComposed(other) && allBound(other, bound):
			expr.Terms = bindExpr(other, side).Terms
			return same
		case isComprehension(other):
			// The comprehension itself stays in the position that its index expects.
			made := h.variable(side)
			terms[1+i] = made
			after := bindExpr(made, side)
			after.Location = expr.Location
			return append(same, after)
		}
	}
	return same
}

// refHeads hoists composites out of references such as [x, y][i].
func (h *hardener) refHeads(expr *ast.Expr, bound ast.VarSet, hoist func(*ast.Term) *ast.Term) {
	ast.NewGenericVisitor(func(node any) bool {
		switch x := node.(type) {
		case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension, *ast.Every:
			return true
		case ast.Ref:
			if len(x) > 1 && isComposed(x[0]) && allBound(x[0], bound) {
				x[0] = hoist(x[0])
			}
		}
		return false
	}).Walk(expr)
}

func (h *hardener) variable(like *ast.Term) *ast.Term {
	h.next++
	term := ast.VarTerm("settled " + strconv.Itoa(h.next))
	term.Location = like.Location
	return term
}

func bindExpr(term, value *ast.Term) *ast.Expr {
	return ast.NewExpr([]*ast.Term{ast.NewTerm(ast.Ref{ast.VarTerm(bindValue.Name)}), term, value})
}

// isComposed reports whether a term is an array, a set or an object with variables in it.
func isComposed(term *ast.Term) bool {
	switch term.Value.(type) {
	case *ast.Array, ast.Object, ast.Set:
		return !term.IsGround()
	}
	return false
}

func isComprehension(term *ast.Term) bool {
	switch term.Value.(type) {
	case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
		return true
	}
	return false
}

// isOpenRef reports whether a term is a reference with variables, which may have many values.
func isOpenRef(term *ast.Term) bool {
	_, isRef := term.Value.(ast.Ref)
	return isRef && !term.IsGround()
}

// IsFunctionOfPolicy reports whether a term is a function or rule of a policy or helper, and not a built-in function.
func IsFunctionOfPolicy(operator *ast.Term) bool {
	ref, ok := operator.Value.(ast.Ref)
	return ok && len(ref) > 0 && ref[0].Equal(ast.DefaultRootDocument)
}

func allBound(term *ast.Term, bound ast.VarSet) bool {
	all := true
	ast.WalkVars(term, func(v ast.Var) bool {
		all = all && bound.Contains(v)
		return !all
	})
	return all
}

// addVars adds the variables of a node, except those of closures in it.
func addVars(bound ast.VarSet, node any) {
	visitor := ast.NewVarVisitor().WithParams(ast.VarVisitorParams{SkipClosures: true, SkipRefCallHead: true})
	visitor.Walk(node)
	bound.Update(visitor.Vars())
}

// nodes counts the nodes of a term without expanding its variables.
func nodes(term *ast.Term) int {
	n := 0
	ast.WalkTerms(term, func(*ast.Term) bool { n++; return false })
	return n
}
