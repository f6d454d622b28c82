package template

import "slices"

// Attempts may take attemptFactor times the steps of the rest of a comparison, plus attemptSteps.
const (
	attemptFactor = 16
	attemptSteps  = 1 << 17
)

// resolve decides all constraints, and searches for values where they are ambiguous.
func (m *matcher) resolve() {
	m.decideReady()
	allowance := attemptSteps + attemptFactor*m.steps
	// Choosing a key or an item may add ambiguous constraints.
	for components := m.components(); components != nil && !m.over(); components = m.components() {
		for _, component := range components {
			component = m.rejectTexts(component)
			before := m.steps
			if !m.attemptWithin(allowance, func() bool { return m.search(component) }) {
				m.explain(component)
			}
			allowance -= m.steps - before
		}
	}
}

// rejectTexts reports the texts that differ from the template's whatever the parameters are, and returns the other
// constraints.
func (m *matcher) rejectTexts(component []int32) []int32 {
	return slices.DeleteFunc(component, func(index int32) bool {
		c := &m.constraints[index]
		if c.kind != constrainText || m.mayRead(c.segments, c.text) {
			return false
		}
		m.finish(index)
		m.differText(c)
		return true
	})
}

// attemptWithin makes an attempt, and undoes its changes if it fails.
func (m *matcher) attemptWithin(allowance int, attempt func() bool) bool {
	start := m.mark()
	m.attempt, m.floor, m.limit = true, len(m.constraints), m.steps+max(allowance, 0)
	succeeded := attempt()
	if !succeeded {
		m.undo(start)
	}
	m.attempt, m.failed, m.trail, m.limit = false, false, m.trail[:0], noLimit
	return succeeded
}

// components returns the undecided constraints in groups. Constraints of a group share an unbound parameter, or choose from
// the same items or keys.
func (m *matcher) components() [][]int32 {
	var groups []int // for each parameter, another of its group, or itself
	root := func(p int) int {
		for groups[p] != p {
			groups[p] = groups[groups[p]]
			p = groups[p]
		}
		return p
	}
	var pending []int32
	var first []int // a parameter of each pending constraint
	shared := map[*choices]int{}
	for i := range m.constraints {
		c := &m.constraints[i]
		m.steps++
		if c.done {
			continue
		}
		if groups == nil {
			groups = make([]int, len(m.values))
			for p := range groups {
				groups[p] = p
			}
		}
		one := noParameter
		m.eachUnknown(c, func(p int) {
			if one == noParameter {
				one = p
			}
			groups[root(p)] = root(one)
		})
		if other, found := shared[c.choices]; found {
			groups[root(other)] = root(one)
		} else if c.choices != nil {
			shared[c.choices] = one
		}
		pending, first = append(pending, int32(i)), append(first, one)
	}
	if pending == nil {
		return nil
	}
	var components [][]int32
	number := map[int]int{}
	for i, index := range pending {
		r := root(first[i])
		n, found := number[r]
		if !found {
			n = len(components)
			number[r] = n
			components = append(components, nil)
		}
		components[n] = append(components[n], index)
	}
	for _, component := range components {
		// Those with the fewest unbound parameters have the fewest options.
		slices.SortStableFunc(component, func(a, b int32) int {
			return int(m.constraints[a].missing - m.constraints[b].missing)
		})
	}
	return components
}

// eachUnknown calls yield for the unbound parameters that a constraint may bind.
func (m *matcher) eachUnknown(c *constraint, yield func(int)) {
	each := func(p int) {
		if p != noParameter && !m.bound[p] {
			yield(p)
		}
	}
	for i := range c.segments {
		each(c.segments[i].parameter)
	}
	m.steps += len(c.segments)
	switch {
	case c.list != nil:
		for i := range c.list.template {
			m.eachParameter(&c.list.template[i], each)
		}
	case c.node != nil:
		m.eachParameter(c.node, each)
	}
}

func (m *matcher) eachParameter(n *node, yield func(int)) {
	m.steps++
	if n.open != nil {
		yield(n.open.parameter)
		for i := range n.open.segments {
			yield(n.open.segments[i].parameter)
		}
	}
	for i := range n.items {
		m.eachParameter(&n.items[i], yield)
	}
	for i := range n.members {
		for _, s := range n.members[i].segments {
			yield(s.parameter)
		}
		m.eachParameter(&n.members[i].value, yield)
	}
}

// search decides the constraints in todo, and those that are added on the way. It takes one after the other, tries its
// options, and continues with the constraints that are undecided then.
func (m *matcher) search(todo []int32) bool {
	m.decideReady()
	if m.over() {
		return false
	}
	for len(todo) > 0 && m.constraints[todo[0]].done {
		todo = todo[1:]
		m.steps++
	}
	index := int32(-1)
	if len(todo) > 0 {
		index = todo[0]
	}
	for i := m.floor; i < len(m.constraints) && index < 0; i++ {
		m.steps++
		if !m.constraints[i].done {
			index = int32(i)
		}
	}
	if index < 0 {
		return true
	}
	switch m.constraints[index].kind {
	case constrainText:
		return m.searchText(index, todo)
	case constrainKey:
		return m.searchKey(index, todo)
	case constrainItem:
		return m.searchItem(index, todo)
	case constrainList:
		return m.searchList(index, todo)
	default:
		// A whole value is never ambiguous.
		return false
	}
}

// option takes one of the options of a constraint, and continues the search.
func (m *matcher) option(take func(), todo []int32) bool {
	start := m.mark()
	m.steps++
	if take(); !m.over() && m.search(todo) {
		return true
	}
	m.undo(start)
	return false
}

func (m *matcher) searchText(index int32, todo []int32) bool {
	c := &m.constraints[index]
	next, from := c.next, c.from
	parameter, options, fits := m.advance(c)
	for fits && m.steps <= m.limit {
		text, looked, found := options.following()
		m.steps += looked
		if !found {
			break
		}
		value, is := options.encoder.decode(text)
		if options.encoder != encodeNone {
			m.steps += len(text)
		}
		if is && m.option(func() { m.bind(parameter, value) }, todo) {
			return true
		}
	}
	c = &m.constraints[index]
	c.next, c.from = next, from
	return false
}

// explain reports the unsatisfied constraints of a component that cannot be satisfied as a whole. It decides its constraints
// separately, one after the other.
func (m *matcher) explain(component []int32) {
	for _, index := range component {
		c := m.constraints[index]
		if c.done || m.over() {
			continue
		}
		m.alone, m.only = true, index
		todo := []int32{index}
		succeeded := m.attemptWithin(attemptFactor*(len(c.text)+len(c.segments)+16), func() bool { return m.search(todo) })
		m.alone = false
		if !succeeded {
			m.finish(index)
			m.differAmbiguous(&c)
			continue
		}
		// This point is reached at most once per parameter, because the attempt bound one.
		for i := range m.constraints {
			m.offer(int32(i))
		}
		m.steps += len(m.constraints)
		m.decideReady()
	}
}

// lateLeaf is a place that is compared after all others, because it may differ from the template.
type lateLeaf struct {
	node    *node
	value   any
	at      int32
	binding bool // the value must be equal
}

func (m *matcher) lateLeaves() {
	text := vmSchema().fields["metadata"].fields["name"]
	for _, leaf := range m.late {
		switch {
		case m.over() || leaf.node.open == nil:
		case leaf.binding && m.isEmptyText(leaf.node):
			// The request determines the namespace of a VirtualMachine.
		case leaf.binding:
			m.value(leaf.node, text, leaf.value, leaf.at, false)
			m.resolve()
		case leaf.value != nil:
			m.attemptWithin(attemptFactor*(len(leaf.node.open.segments)+256), func() bool {
				m.value(leaf.node, text, leaf.value, leaf.at, false)
				return m.search(nil)
			})
		}
	}
}

// isEmptyText reports whether a text is bound and empty.
func (m *matcher) isEmptyText(n *node) bool {
	if n.isWhole() {
		return m.bound[n.open.parameter] && m.values[n.open.parameter] == ""
	}
	for _, s := range n.open.segments {
		if text, known := m.textOf(s); !known || text != "" {
			return false
		}
	}
	return true
}
