package fastpath

import (
	"errors"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// errUnknown ends a built-in function that returns several values.
var errUnknown = errors.New("not decided")

// builtin calls a function of the sandbox, within the same limits as OPA.
func (m *machine) builtin(b *body, i, base int) bool {
	s := &b.steps[i]
	if s.fast != nil {
		if value := s.fast(m, s.args, base); value != nil {
			if !m.unify(&s.target, value, base) {
				return true
			}
			return m.run(b, i+1, base)
		}
	}
	if s.many {
		return m.relation(b, i, base)
	}
	// The function must not retain its operands, so that the memory is used again.
	from := len(m.operands)
	for j := range s.args {
		m.operands = append(m.operands, m.value(&s.args[j], base))
	}
	m.output = nil
	err := s.builtin(topdown.BuiltinContext{Context: m.ctx, Cancel: m.query.Budget}, m.operands[from:len(m.operands):len(m.operands)], m.accept)
	clear(m.operands[from:])
	m.operands = m.operands[:from]
	if err != nil {
		return false
	}
	if m.output == nil || !m.unify(&s.target, m.output, base) {
		return true
	}
	return m.run(b, i+1, base)
}

// relation calls a function that returns several values.
func (m *machine) relation(b *body, i, base int) bool {
	s := &b.steps[i]
	operands := m.values(s.args, base)
	if s.output != nil {
		operands = append(operands, s.output)
	}
	err := s.builtin(topdown.BuiltinContext{Context: m.ctx, Cancel: m.query.Budget}, operands, func(value *ast.Term) error {
		if m.unify(&s.target, value, base) && !m.run(b, i+1, base) {
			return errUnknown
		}
		return nil
	})
	return err == nil
}
