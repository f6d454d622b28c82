package typing

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/vmstencil/stencil/rego/internal/sandbox"
)

func jsonNumber(i int) json.Number { return json.Number(strconv.Itoa(i)) }

// maxOrigins is how many variables are followed from one to the next.
const maxOrigins = 8

// origin returns the document that a term is: input.object for vm after vm := input.object. It returns nil if that is not known.
func (s scope) origin(term *ast.Term) ast.Ref {
	return s.originAfter(term, 0)
}

func (s scope) originAfter(term *ast.Term, depth int) ast.Ref {
	switch value := term.Value.(type) {
	case ast.Ref:
		if value[0].Equal(ast.InputRootDocument) || value[0].Equal(ast.DefaultRootDocument) {
			return value
		}
		if base := s.originAfter(value[0], depth); base != nil {
			return base.Concat(value[1:])
		}
	case ast.Var:
		if value.Equal(ast.InputRootDocument.Value) {
			return ast.InputRootRef
		}
		if known := s.origins[value]; known != nil || depth == maxOrigins {
			return known
		}
		for _, expr := range s.body {
			if !expr.IsEquality() || expr.Negated {
				continue
			}
			for i, operand := range expr.Operands() {
				other := expr.Operand(1 - i)
				if ref, ok := other.Value.(ast.Ref); ok && operand.Value.Compare(value) == 0 && !ref[0].Equal(term) {
					return s.originAfter(other, depth+1)
				}
			}
		}
	}
	return nil
}

// typeOf returns the type of a term if that is easy to find out, else nil: of constants, documents, and results of functions.
func (c *checker) typeOf(s scope, term *ast.Term) types.Type {
	if origin := s.origin(term); origin != nil {
		if found := c.Types.GetByRef(origin); found != nil && isKnown(found) {
			return found
		}
		return nil
	}
	switch value := term.Value.(type) {
	case ast.Boolean, ast.Null, ast.Number, ast.String:
		return c.Types.GetByValue(value)
	case ast.Var:
		for _, expr := range s.body {
			if expr.Negated || !expr.IsCall() || expr.IsEquality() {
				continue
			}
			f, ok := c.Types.GetByRef(expr.Operator()).(*types.Function)
			if ok && len(expr.Operands()) == f.Arity()+1 && expr.Operand(f.Arity()).Value.Compare(value) == 0 {
				return f.Result()
			}
		}
	}
	return nil
}

// field returns the origin of a term in the form of the table of closed fields: dots, and * for an element.
func (s scope) field(term *ast.Term) string {
	ref := s.origin(term)
	if ref == nil || !ref[0].Equal(ast.InputRootDocument) {
		return ""
	}
	parts := []string{"input"}
	for _, part := range ref[1:] {
		switch value := part.Value.(type) {
		case ast.String:
			parts = append(parts, string(value))
		default:
			parts = append(parts, "*")
		}
	}
	return strings.Join(parts, ".")
}

// entry checks that the elements of deny and warn are findings.
func (c *checker) entry(s scope, name string, key *ast.Term) {
	c.withTypes(s, func(found []types.Type) {
		if len(found) != 1 || isFinding(found[0]) {
			return
		}
		c.find(s, Finding{Location: key.Location, Message: fmt.Sprintf("%s contains what is no finding: it is a string, or an object with the strings msg, field and fix, of which msg is required", name)})
	}, key)
}

// isFinding reports whether a value of a type can be a finding.
func isFinding(t types.Type) bool {
	switch t := t.(type) {
	case types.String:
		return true
	case types.Any:
		return len(t) == 0 || slices.ContainsFunc(t, isFinding)
	case *types.Object:
		if t.DynamicProperties() != nil {
			return true
		}
		for _, property := range t.StaticProperties() {
			if name, ok := property.Key.(string); !ok || !slices.Contains([]string{"msg", "field", "fix"}, name) || !kindsOf(property.Value).overlap(kinds{"string"}) {
				return false
			}
		}
		return t.Select("msg") != nil
	}
	return t == nil
}

// negation finds parts of input that exist in every input, and are null if there is nothing in them.
func (c *checker) negation(s scope, expr *ast.Expr) {
	term, ok := expr.Terms.(*ast.Term)
	if !ok {
		return
	}
	ref := s.origin(term)
	if len(ref) != 2 || !ref[0].Equal(ast.InputRootDocument) {
		return
	}
	name, _ := ref[1].Value.(ast.String)
	if !slices.Contains([]string{"object", "oldObject", "template", "instancetype", "preference"}, string(name)) {
		return
	}
	c.find(s, Finding{Location: expr.Location, Message: fmt.Sprintf("not %s is never true: it is null where there is none, which not does not match; write %s == null", ref, ref)})
}

// kinds are the basic types of values; nil is any.
type kinds []string

func kindsOf(t types.Type) kinds {
	switch t := t.(type) {
	case *types.NamedType:
		return kindsOf(t.Type)
	case types.Null:
		return kinds{"null"}
	case types.Boolean:
		return kinds{"boolean"}
	case types.Number:
		return kinds{"number"}
	case types.String:
		return kinds{"string"}
	case *types.Array:
		return kinds{"array"}
	case *types.Object:
		return kinds{"object"}
	case *types.Set:
		return kinds{"set"}
	case types.Any:
		var all kinds
		for _, part := range t {
			found := kindsOf(part)
			if found == nil {
				return nil
			}
			all = append(all, found...)
		}
		return all
	}
	return nil
}

func (k kinds) overlap(other kinds) bool {
	return k == nil || other == nil || slices.ContainsFunc(k, func(one string) bool { return slices.Contains(other, one) })
}

// mixed reports whether values may be numbers or strings, as quantities are.
func (k kinds) mixed() bool { return slices.Contains(k, "number") && slices.Contains(k, "string") }

func (k kinds) String() string { return strings.Join(k, " or ") }

// ordering checks that both sides of <, <=, > or >= have one type. Rego orders values of all types: any string is greater than any number.
func (c *checker) ordering(s scope, expr *ast.Expr, operands []*ast.Term) {
	if s.guarded {
		return
	}
	c.withTypes(s, func(found []types.Type) {
		if len(found) != 2 {
			return
		}
		left, right := kindsOf(found[0]), kindsOf(found[1])
		switch {
		case !left.overlap(right):
			c.find(s, Finding{Location: expr.Location, Message: fmt.Sprintf("a %s is compared with a %s: the result does not depend on their values", left, right)})
		case left.mixed() || right.mixed():
			c.find(s, Finding{Location: expr.Location, Message: "a value that may be a number or a string is compared: any string is greater than any number; compare data.lib.quantity of it"})
		}
	}, operands[0], operands[1])
}

// equality finds values that a field cannot have.
func (c *checker) equality(s scope, operands []*ast.Term) {
	if len(operands) != 2 {
		return
	}
	for i, operand := range operands {
		if text, ok := operands[1-i].Value.(ast.String); ok {
			c.closed(s, operand, string(text), operands[1-i].Location)
		}
	}
}

// membership does the same for x in [a, b].
func (c *checker) membership(s scope, operands []*ast.Term) {
	var each func(func(*ast.Term))
	switch collection := operands[1].Value.(type) {
	case *ast.Array:
		each = collection.Foreach
	case ast.Set:
		each = collection.Foreach
	default:
		return
	}
	each(func(element *ast.Term) {
		if text, ok := element.Value.(ast.String); ok {
			c.closed(s, operands[0], string(text), element.Location)
		}
	})
}

// closed finds a value that a field with a closed set of values does not have.
func (c *checker) closed(s scope, term *ast.Term, value string, at *ast.Location) {
	field := s.field(term)
	values := c.closedValues(field)
	// Compared with the empty string is what may be missing.
	if values == nil || value == "" || slices.Contains(values, value) {
		return
	}
	c.find(s, Finding{Location: at, Message: fmt.Sprintf("%s is never %q%s; it is one of %s", strings.ReplaceAll(field, ".*", "[_]"), value, c.Suggest(value, values), strings.Join(values, ", "))})
}

// steps returns the constant path of object.get: one key, or an array of keys.
func steps(path *ast.Term) []*ast.Term {
	switch value := path.Value.(type) {
	case ast.String:
		return []*ast.Term{path}
	case *ast.Array:
		return constants(value)
	}
	return nil
}

// constants returns the beginning of a path that consists of strings and numbers.
func constants(path *ast.Array) (found []*ast.Term) {
	for i := range path.Len() {
		switch path.Elem(i).Value.(type) {
		case ast.String, ast.Number:
			found = append(found, path.Elem(i))
		default:
			return found
		}
	}
	return found
}

// path has the type checker check a path as if it were written with dots.
func (c *checker) path(s scope, of *ast.Term, path []*ast.Term) {
	base := s.origin(of)
	if len(path) == 0 || isParameters(base) {
		return
	}
	if base == nil {
		switch value := of.Value.(type) {
		case ast.Ref:
			base = value
		case ast.Var:
			base = ast.Ref{of}
		default:
			return
		}
	}
	c.probe(s, func([]types.Type) {}, ast.NewTerm(base.Copy().Concat(path)))
}

// isParameters reports whether a document is data.parameters, of which object.get reads those that may be missing.
func isParameters(ref ast.Ref) bool {
	return len(ref) > 1 && ref[0].Equal(ast.DefaultRootDocument) && ref[1].Equal(ast.StringTerm("parameters"))
}

// zone finds time zones that fail when the policy is evaluated, in [nanoseconds, zone] and [nanoseconds, zone, layout]. Names that are computed are checked
// when the policy is evaluated.
func (c *checker) zone(s scope, operand *ast.Term) {
	array, ok := operand.Value.(*ast.Array)
	if !ok || array.Len() < 2 {
		return
	}
	if name, ok := array.Elem(1).Value.(ast.String); ok {
		if err := sandbox.CheckZone(string(name)); err != nil {
			c.find(s, Finding{Location: array.Elem(1).Location, Message: err.Error()})
		}
	}
}
