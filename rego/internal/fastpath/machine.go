package fastpath

import (
	"context"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/vmstencil/stencil/rego/internal/sandbox"
)

// Query is one evaluation.
type Query struct {
	Input      *ast.Term
	Parameters ast.Value
	// Cluster is data.cluster.
	Cluster ast.Value
	// Constants are the values of rules that depend on the parameters and data.cluster alone; nil for those that are undefined.
	Constants map[ast.String]*ast.Term
	Helpers   Helpers
	// Budget limits the steps, the time and the created values.
	Budget *sandbox.Budget
}

// Helpers are the values of the rules of data.lib for an input.
type Helpers interface {
	// Helper returns the value of a rule, nil if it is undefined. It returns false if the rule fails.
	Helper(name ast.String) (*ast.Term, bool)
}

// Evaluate sets the values of the entry rules. It returns false where it gives up.
func (p *Program) Evaluate(ctx context.Context, q *Query, values []*ast.Term) bool {
	m := machines.Get().(*machine)
	defer m.free()
	m.ctx, m.query = ctx, q
	m.parameters.Value, m.cluster.Value = q.Parameters, q.Cluster
	if cap(m.known) < p.documents {
		m.known = make([]known, p.documents)
	}
	m.known = m.known[:p.documents]
	for i, entry := range p.entries {
		value, ok := m.document(entry)
		if !ok {
			return false
		}
		values[i] = value
	}
	return q.Budget.Err() == nil
}

// machine is the state of one evaluation. Its methods return false where they give up.
type machine struct {
	ctx        context.Context
	query      *Query
	parameters ast.Term
	cluster    ast.Term
	stack      []*ast.Term // the variables of the active clauses
	top        int
	sinks      []sink
	known      []known // by the index of the document
	operands   []*ast.Term
	output     *ast.Term             // of the last function
	accept     func(*ast.Term) error // stores output
}

// sink collects what a body finds.
type sink struct {
	found bool
	value *ast.Term
	terms []*ast.Term
	items [][2]*ast.Term
}

// known is the value of a document, nil if it is undefined.
type known struct {
	evaluated bool
	value     *ast.Term
}

var machines = sync.Pool{New: func() any {
	m := &machine{}
	m.accept = func(value *ast.Term) error {
		m.output = value
		return nil
	}
	return m
}}

// free returns the machine to the pool, without what it refers to.
func (m *machine) free() {
	clear(m.stack)
	clear(m.sinks[:cap(m.sinks)])
	clear(m.known)
	clear(m.operands)
	*m = machine{stack: m.stack, sinks: m.sinks[:0], known: m.known[:0], operands: m.operands[:0], accept: m.accept}
	machines.Put(m)
}

func (m *machine) push() { m.sinks = append(m.sinks, sink{}) }

func (m *machine) pop() sink {
	last := m.sinks[len(m.sinks)-1]
	m.sinks = m.sinks[:len(m.sinks)-1]
	return last
}

// clause evaluates one definition, with the arguments of a call in the variables from caller on, and stores what it finds in the last sink.
func (m *machine) clause(c *clause, args []operand, caller int) bool {
	base := m.top
	m.top += c.slots
	for len(m.stack) < m.top {
		m.stack = append(m.stack, nil)
	}
	ok := true
	matches := true
	for i := range c.args {
		if matches = m.unify(&c.args[i], m.value(&args[i], caller), base); !matches {
			break
		}
	}
	if matches {
		ok = m.run(c.body, 0, base)
	}
	m.top = base
	return ok
}

// definitions evaluates all definitions of a complete rule or function. The value is nil if it is undefined. Two values are a conflict.
func (m *machine) definitions(clauses []*clause, args []operand, caller int) (*ast.Term, bool) {
	m.push()
	for _, c := range clauses {
		before := m.sinks[len(m.sinks)-1].found
		for ; c != nil; c = c.otherwise {
			m.sinks[len(m.sinks)-1].found = false
			if !m.clause(c, args, caller) {
				m.pop()
				return nil, false
			}
			if m.sinks[len(m.sinks)-1].found {
				break
			}
		}
		m.sinks[len(m.sinks)-1].found = m.sinks[len(m.sinks)-1].found || before
	}
	value := m.pop().value
	return value, m.take(value)
}

// take counts a created value.
func (m *machine) take(value *ast.Term) bool {
	if value == nil {
		return true
	}
	switch value.Value.(type) {
	case ast.Boolean, ast.Null, ast.Number:
		return true
	}
	return m.query.Budget.Take(value.Value) == nil
}

// document returns the value of a rule.
func (m *machine) document(d *document) (*ast.Term, bool) {
	if known := m.known[d.index]; known.evaluated {
		return known.value, true
	}
	value, ok := m.evaluate(d)
	if ok {
		m.known[d.index] = known{true, value}
	}
	return value, ok
}

func (m *machine) evaluate(d *document) (*ast.Term, bool) {
	if d.helper {
		return m.query.Helpers.Helper(d.name)
	}
	if value, ok := m.query.Constants[d.name]; ok && !d.inLib {
		return value, true
	}
	if d.unknown {
		return nil, false
	}
	if d.fields != nil {
		return m.object(d)
	}
	if !d.set {
		value, ok := m.definitions(d.clauses, nil, 0)
		if value == nil {
			value = d.initial
		}
		return value, ok
	}
	m.push()
	for _, c := range d.clauses {
		if !m.clause(c, nil, 0) {
			m.pop()
			return nil, false
		}
	}
	found := m.pop()
	if len(found.terms) == 0 {
		return emptySet, true
	}
	value := ast.SetTerm(found.terms...)
	return value, m.take(value)
}

var emptySet = ast.SetTerm()

// object returns the value of a rule that is defined by keys.
func (m *machine) object(d *document) (*ast.Term, bool) {
	object := ast.NewObject()
	for i := range d.fields {
		value, ok := m.definitions(d.fields[i].clauses, nil, 0)
		if !ok {
			return nil, false
		}
		if value != nil {
			object.Insert(d.fields[i].key, value)
		}
	}
	return ast.NewTerm(object), true
}

// run evaluates the steps of a body from i on, once for each way in which the previous ones hold.
func (m *machine) run(b *body, i, base int) bool {
	if i == len(b.steps) {
		return m.end(b, base)
	}
	if m.query.Budget.Cancelled() {
		return false
	}
	s := &b.steps[i]
	switch s.kind {
	case stepValue:
		if !m.unify(&s.target, m.value(&s.operand, base), base) {
			return true
		}
		return m.run(b, i+1, base)
	case stepReference:
		term, ok := m.root(s.ref, base)
		if !ok || term == nil {
			return ok
		}
		return m.follow(b, i, base, term, 0)
	case stepNot:
		m.push()
		ok := m.run(s.inner, 0, base)
		if holds := m.pop().found; !ok || holds {
			return ok
		}
		return m.run(b, i+1, base)
	case stepFunction:
		value, ok := m.definitions(s.function.clauses, s.args, base)
		if !ok || value == nil || !m.unify(&s.target, value, base) {
			return ok
		}
		return m.run(b, i+1, base)
	case stepBuiltin:
		return m.builtin(b, i, base)
	case stepComprehension:
		value, ok := m.comprehension(s.inner, base)
		if !ok || !m.unify(&s.target, value, base) {
			return ok
		}
		return m.run(b, i+1, base)
	case stepEvery:
		holds, ok := m.every(s, base)
		if !ok || !holds {
			return ok
		}
		return m.run(b, i+1, base)
	}
	return false
}

// end stores what a body finds in the last sink.
func (m *machine) end(b *body, base int) bool {
	s := &m.sinks[len(m.sinks)-1]
	s.found = true
	switch b.end {
	case endValue:
		value := m.value(&b.out, base)
		if s.value != nil && !ast.ValueEqual(s.value.Value, value.Value) {
			return false
		}
		s.value = value
	case endArray, endSet:
		s.terms = append(s.terms, m.value(&b.out, base))
	case endObject:
		s.items = append(s.items, [2]*ast.Term{m.value(&b.key, base), m.value(&b.out, base)})
	}
	return true
}

func (m *machine) comprehension(inner *body, base int) (*ast.Term, bool) {
	m.push()
	ok := m.run(inner, 0, base)
	found := m.pop()
	if !ok {
		return nil, false
	}
	switch inner.end {
	case endArray:
		return ast.ArrayTerm(found.terms...), true
	case endSet:
		return ast.SetTerm(found.terms...), true
	}
	object := ast.NewObject()
	for _, item := range found.items {
		if other := object.Get(item[0]); other != nil && !ast.ValueEqual(other.Value, item[1].Value) {
			return nil, false
		}
		object.Insert(item[0], item[1])
	}
	return ast.NewTerm(object), true
}

func (m *machine) every(s *step, base int) (holds, ok bool) {
	domain := m.value(&s.operand, base)
	switch domain.Value.(type) {
	case *ast.Array, ast.Object, ast.Set:
	default:
		return false, true
	}
	holds = true
	ok = enumerate(domain, func(key, value *ast.Term) bool {
		if s.key >= 0 {
			m.stack[base+s.key] = key
		}
		m.stack[base+s.value] = value
		m.push()
		ok := m.run(s.inner, 0, base)
		holds = m.pop().found && holds
		return ok
	})
	return holds, ok
}

// root returns the value in which a reference begins, nil if it is undefined.
func (m *machine) root(r *reference, base int) (*ast.Term, bool) {
	switch r.base {
	case baseInput:
		return m.query.Input, true
	case baseParameters:
		return &m.parameters, true
	case baseCluster:
		return &m.cluster, true
	case baseDocument:
		return m.document(r.document)
	default:
		return m.stack[base+r.slot], true
	}
}

// follow follows the path of a reference from a key on, and continues with the next step for each value at its end.
func (m *machine) follow(b *body, i, base int, term *ast.Term, from int) bool {
	s := &b.steps[i]
	for position := from; position < len(s.ref.path); position++ {
		key := &s.ref.path[position]
		switch key.kind {
		case pathConstant:
			term = child(term.Value, key.term)
		case pathBound:
			term = child(term.Value, m.stack[base+key.slot])
		case pathFree:
			return m.followAll(b, i, base, term, position)
		}
		if term == nil {
			return true
		}
	}
	if !m.unify(&s.target, term, base) {
		return true
	}
	return m.run(b, i+1, base)
}

// followAll continues with each key of a value.
func (m *machine) followAll(b *body, i, base int, term *ast.Term, position int) bool {
	slot := base + b.steps[i].ref.path[position].slot
	switch value := term.Value.(type) {
	case *ast.Array: // without the cost of a closure
		for j := range value.Len() {
			m.stack[slot] = ast.InternedTerm(j)
			if !m.follow(b, i, base, value.Elem(j), position+1) {
				return false
			}
		}
		return true
	case ast.Set:
		for _, element := range value.Slice() {
			m.stack[slot] = element
			if !m.follow(b, i, base, element, position+1) {
				return false
			}
		}
		return true
	}
	return enumerate(term, func(key, value *ast.Term) bool {
		m.stack[slot] = key
		return m.follow(b, i, base, value, position+1)
	})
}

// child returns the value of a key, nil if there is none.
func child(value ast.Value, key *ast.Term) *ast.Term {
	switch value := value.(type) {
	case ast.Object:
		return value.Get(key)
	case *ast.Array:
		return value.Get(key)
	case ast.Set:
		if value.Contains(key) {
			return key
		}
	}
	return nil
}

// enumerate calls a function for each key and value in OPA's order, until it returns false.
func enumerate(term *ast.Term, each func(key, value *ast.Term) bool) bool {
	switch value := term.Value.(type) {
	case *ast.Array:
		for i := range value.Len() {
			if !each(ast.InternedTerm(i), value.Elem(i)) {
				return false
			}
		}
	case ast.Object:
		return !value.Until(func(key, value *ast.Term) bool { return !each(key, value) })
	case ast.Set:
		for _, element := range value.Slice() {
			if !each(element, element) {
				return false
			}
		}
	}
	return true
}
