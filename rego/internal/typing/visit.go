package typing

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// rule checks the body of a rule that is no function.
func (c *checker) rule(r *ast.Rule) {
	s := scope{body: r.Body}
	if name := r.Head.Ref().String(); slices.Contains(c.Entries, name) && r.Head.Key != nil {
		c.entry(s, name, r.Head.Key)
	}
	c.body(s, r.Body)
}

// body checks the expressions of a body, whose variables have the values of the scope.
func (c *checker) body(s scope, body ast.Body) {
	s.guarded = s.guarded || slices.ContainsFunc(body, isGuard)
	for _, expr := range body {
		c.expression(s, expr)
		if every, ok := expr.Terms.(*ast.Every); ok {
			inner := s
			inner.body = joined(without(s.body, expr), elementOf(every))
			inner.body = joined(inner.body, every.Body)
			c.body(inner, every.Body)
			continue
		}
		ast.WalkClosures(expr, func(node any) bool {
			var nested ast.Body
			switch x := node.(type) {
			case *ast.ArrayComprehension:
				nested = x.Body
			case *ast.SetComprehension:
				nested = x.Body
			case *ast.ObjectComprehension:
				nested = x.Body
			default:
				return false
			}
			inner := s
			inner.body = joined(s.body, nested)
			c.body(inner, nested)
			return true
		})
	}
}

func joined(a, b ast.Body) ast.Body { return append(slices.Clip(slices.Clone(a)), b...) }

func without(body ast.Body, expr *ast.Expr) ast.Body {
	return slices.DeleteFunc(slices.Clone(body), func(e *ast.Expr) bool { return e == expr })
}

// elementOf returns the expression that gives the variables of an every their values.
func elementOf(every *ast.Every) ast.Body {
	key := every.Key
	if key == nil {
		key = ast.VarTerm("any key")
	}
	element := ast.Equality.Expr(every.Value, ast.RefTerm(every.Domain, key))
	element.Location = every.Location
	return ast.Body{element}
}

// isGuard reports whether an expression distinguishes types, as in is_number(x).
func isGuard(expr *ast.Expr) bool {
	if !expr.IsCall() {
		return false
	}
	name := expr.Operator().String()
	return strings.HasPrefix(name, "is_") || name == ast.TypeNameBuiltin.Name
}

// expression checks one expression.
func (c *checker) expression(s scope, expr *ast.Expr) {
	if expr.Negated {
		c.negation(s, expr)
	}
	terms, ok := expr.Terms.([]*ast.Term)
	if !ok {
		return
	}
	operator := expr.Operator().String()
	operands := terms[1:]
	switch operator {
	case ast.GreaterThan.Name, ast.GreaterThanEq.Name, ast.LessThan.Name, ast.LessThanEq.Name:
		c.ordering(s, expr, operands)
	case ast.Equality.Name, ast.Equal.Name, ast.NotEqual.Name:
		c.equality(s, operands)
	case ast.Member.Name:
		c.membership(s, operands)
	case ast.ObjectGet.Name:
		c.path(s, operands[0], steps(operands[1]))
	case ast.WalkBuiltin.Name:
		if len(operands) == 2 {
			if output, ok := operands[1].Value.(*ast.Array); ok && output.Len() == 2 {
				if path, ok := output.Elem(0).Value.(*ast.Array); ok {
					c.path(s, operands[0], constants(path))
				}
			}
		}
	case ast.Clock.Name, ast.Date.Name, ast.Weekday.Name, ast.AddDate.Name, ast.Diff.Name, ast.Format.Name:
		for _, operand := range operands {
			c.zone(s, operand)
		}
	default:
		if f := c.called(expr); f != nil {
			c.call(s, expr, f)
		}
	}
}
