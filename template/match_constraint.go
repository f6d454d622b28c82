package template

// constraint is a place where the template's value contains a parameter.
type constraint struct {
	kind    constraintKind
	level   uint8
	done    bool
	kept    bool  // see matcher.value
	null    bool  // the value is an existing item of a list, and is null
	missing int32 // number of unbound parameters that it waits for
	at      int32 // the place: of the value; for an item or a key, of the list or object

	segments []segment // of a text or a key
	node     *node     // of the value, the item or the list
	schema   *schema
	value    any    // of a whole value
	text     string // of a text
	next     int    // text[:from] is the text of segments[:next]
	from     int

	choices *choices // of an item or a key
	part    int      // which of the template's items or members it is
	list    *alignment
}

type constraintKind uint8

const (
	// constrainText requires that segments yield text.
	constrainText constraintKind = iota

	// constrainWhole requires that the parameter of node, read as JSON, equals value.
	constrainWhole

	// constrainKey requires that an object has a member with segments as its key.
	constrainKey

	// constrainItem requires that a list has an item with the name of node.
	constrainItem

	// constrainList requires that the rest of a list equals that of another, which depends on whether an item is left out.
	constrainList
)

// The levels on which constraints are decided: those that determine a parameter uniquely come before those that permit
// several spellings.
const (
	levelExact   = iota
	levelScalar  // numbers and booleans
	levelSpelt   // quantities, times, strings that may have quotes
	levelSubtree // objects and lists
	levelNothing // absent values
	levels
)

// link records that a constraint waits for a parameter. The links of a parameter are chained, the latest first.
type link struct {
	constraint int32
	parameter  int32
	before     int32
}

// change is a change by an attempt that may have to be undone.
type change struct {
	kind  changeKind
	index int32
}

type changeKind uint8

const (
	changeBound changeKind = iota
	changeDone
	changeClaimed
)

// mark is a state that undo can return to.
type mark struct {
	trail, constraints, links, places, claimed, inserted int
}

func (m *matcher) mark() mark {
	return mark{trail: len(m.trail), constraints: len(m.constraints), links: len(m.links), places: len(m.places), claimed: len(m.claimed), inserted: m.inserted}
}

// undo returns to a state of the running attempt, in which no constraint was
// ready.
func (m *matcher) undo(to mark) {
	for level := range m.ready {
		m.ready[level] = m.ready[level][:0]
	}
	for i := len(m.links) - 1; i >= to.links; i-- {
		m.linked[m.links[i].parameter] = m.links[i].before
	}
	m.links = m.links[:to.links]
	for i := len(m.trail) - 1; i >= to.trail; i-- {
		switch c := m.trail[i]; c.kind {
		case changeBound:
			m.bound[c.index], m.values[c.index] = false, ""
			m.forget(int(c.index))
			for l := m.linked[c.index]; l >= 0; l = m.links[l].before {
				m.constraints[m.links[l].constraint].missing++
			}
		case changeDone:
			m.constraints[c.index].done = false
		case changeClaimed:
			m.claimed[c.index] = 0
		}
	}
	m.trail = m.trail[:to.trail]
	m.constraints, m.places, m.claimed = m.constraints[:to.constraints], m.places[:to.places], m.claimed[:to.claimed]
	m.inserted, m.failed = to.inserted, false
}

func (m *matcher) note(kind changeKind, index int32) {
	if m.attempt {
		m.trail = append(m.trail, change{kind: kind, index: index})
	}
}

// add adds a constraint that waits for the parameters in triggers, and for parameter unless that is noParameter.
func (m *matcher) add(c constraint, triggers []segment, parameter int) {
	index := int32(len(m.constraints))
	m.constraints = append(m.constraints, c)
	m.visit++
	wait := func(p int) {
		if p == noParameter || m.bound[p] || m.seen[p] == m.visit {
			return
		}
		m.seen[p] = m.visit
		m.links = append(m.links, link{constraint: index, parameter: int32(p), before: m.linked[p]})
		m.linked[p] = int32(len(m.links) - 1)
		m.constraints[index].missing++
	}
	for i := range triggers {
		wait(triggers[i].parameter)
	}
	wait(parameter)
	m.steps += len(triggers)
	m.offer(index)
}

// offer adds a constraint to the list of those that can be decided if it can.
func (m *matcher) offer(index int32) {
	c := &m.constraints[index]
	most := int32(0)
	if c.kind == constrainText || c.kind == constrainWhole {
		most = 1
	}
	if !c.done && c.missing <= most && (!m.alone || index >= int32(m.floor) || index == m.only) {
		m.ready[c.level] = append(m.ready[c.level], index)
	}
}

// bind sets the value of a parameter. If the parameter rejects the value, an attempt fails; outside of attempts, the value
// is reported at the end.
func (m *matcher) bind(parameter int, value string) {
	if m.attempt && !m.admits(parameter, value) {
		m.failed = true
		return
	}
	m.forget(parameter)
	m.values[parameter], m.bound[parameter] = value, true
	m.note(changeBound, int32(parameter))
	for l := m.linked[parameter]; l >= 0; l = m.links[l].before {
		m.constraints[m.links[l].constraint].missing--
	}
	// The oldest first, so that places are compared in their order.
	var offered []int32
	for l := m.linked[parameter]; l >= 0; l = m.links[l].before {
		offered = append(offered, m.links[l].constraint)
	}
	for i := len(offered) - 1; i >= 0; i-- {
		m.offer(offered[i])
	}
	m.steps += len(offered)
}

// decideReady decides every constraint that is ready, and those that become ready by that.
func (m *matcher) decideReady() {
	for level := 0; level < levels; {
		if m.over() {
			return
		}
		if len(m.ready[level]) == 0 {
			level++
			continue
		}
		index := m.ready[level][0]
		m.ready[level] = m.ready[level][1:]
		if !m.constraints[index].done {
			m.decide(index)
		}
		level = 0
	}
}

// finish marks a constraint as decided.
func (m *matcher) finish(index int32) {
	m.constraints[index].done = true
	m.note(changeDone, index)
}

func (m *matcher) decide(index int32) {
	m.steps++
	m.finish(index)
	c := m.constraints[index]
	switch c.kind {
	case constrainText:
		if !m.decideText(&c) {
			m.constraints[index].done = false
		}
	case constrainWhole:
		m.decideWhole(&c)
	case constrainKey:
		m.decideKey(&c)
	case constrainItem:
		m.decideItem(&c)
	case constrainList:
		m.align(*c.list, c.at)
	}
}

// claim assigns a key or an item to a part of the template. It reports whether it was unassigned.
func (m *matcher) claim(index, part int) bool {
	if m.claimed[index] != 0 {
		return false
	}
	m.claimed[index] = int32(part) + 1
	m.note(changeClaimed, int32(index))
	return true
}
