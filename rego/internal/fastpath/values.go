package fastpath

import "github.com/open-policy-agent/opa/v1/ast"

// unify reports whether a value matches a pattern, and binds its variables.
func (m *machine) unify(p *pattern, value *ast.Term, base int) bool {
	switch p.kind {
	case patternTrue:
		return value.Value != ast.Boolean(false)
	case patternBind:
		m.stack[base+p.slot] = value
		return true
	case patternEqual:
		return ast.ValueEqual(m.value(&p.operand, base).Value, value.Value)
	}
	array, ok := value.Value.(*ast.Array)
	if !ok || array.Len() != len(p.parts) {
		return false
	}
	for i := range p.parts {
		if !m.unify(&p.parts[i], array.Elem(i), base) {
			return false
		}
	}
	return true
}

// value returns the value of an operand.
func (m *machine) value(o *operand, base int) *ast.Term {
	switch o.kind {
	case operandConstant:
		return o.term
	case operandVariable:
		return m.stack[base+o.slot]
	case operandArray:
		return ast.ArrayTerm(m.values(o.parts, base)...)
	case operandSet:
		return ast.SetTerm(m.values(o.parts, base)...)
	}
	items := make([][2]*ast.Term, len(o.parts)/2)
	for i := range items {
		items[i] = [2]*ast.Term{m.value(&o.parts[2*i], base), m.value(&o.parts[2*i+1], base)}
	}
	return ast.ObjectTerm(items...)
}

func (m *machine) values(operands []operand, base int) []*ast.Term {
	terms := make([]*ast.Term, len(operands))
	for i := range operands {
		terms[i] = m.value(&operands[i], base)
	}
	return terms
}
