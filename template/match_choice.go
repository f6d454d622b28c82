package template

import (
	"maps"
	"slices"
)

// choices are the keys of an object or the items of a list that parts of a template with unbound keys or names may match.
type choices struct {
	object map[string]any
	keys   []string
	fixed  *node // the object of the template
	owned  func(string) bool

	names *names

	base, size int // matcher.claimed[base : base+size]
}

// keys returns the keys of an object that are not literal keys of the template.
func (m *matcher) keys(n *node, object map[string]any, owned func(string) bool) *choices {
	c := &choices{object: object, fixed: n, owned: owned, base: len(m.claimed)}
	literal := make(map[string]bool, len(n.members))
	for i := range n.members {
		if n.members[i].segments == nil {
			literal[n.members[i].key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !literal[key] && object[key] != nil && (owned == nil || !owned(key)) {
			c.keys = append(c.keys, key)
		}
	}
	c.size = len(c.keys)
	m.steps += len(n.members) + len(object)
	m.claimed = append(m.claimed, make([]int32, c.size)...)
	return c
}

// decideKey compares a member after its key is bound.
func (m *matcher) decideKey(c *constraint) {
	key := m.join(c.segments)
	if key != "" && c.choices.owned != nil && c.choices.owned(key) {
		return
	}
	if position, found := slices.BinarySearch(c.choices.keys, key); found && m.claim(c.choices.base+position, c.part) {
		m.member(c, key, c.choices.object[key])
		return
	}
	if _, taken := c.choices.object[key]; taken && c.choices.object[key] != nil || key == "" {
		// Render rejects an empty key, and a duplicate key.
		m.differ(m.key(c.at, m.shownKey(c)), c.node.wanted(), describe(nil))
		return
	}
	m.member(c, key, nil)
}

// member compares the value of a member with the value under this key.
func (m *matcher) member(c *constraint, key string, v any) {
	at := m.key(c.at, key)
	if m.compiled.sensitive(c.segments) {
		at = m.key(c.at, m.shownKey(c))
	}
	schema, kept := c.schema.child(key)
	m.value(c.node, schema, v, at, kept)
}

func (m *matcher) shownKey(c *constraint) string {
	if m.compiled.sensitive(c.segments) {
		return m.compiled.spell(c.segments)
	}
	return m.spelled(c.segments)
}

func (m *matcher) searchKey(index int32, todo []int32) bool {
	c := m.constraints[index]
	for position, key := range c.choices.keys {
		if m.steps++; m.steps > m.limit {
			return false
		}
		if m.claimed[c.choices.base+position] != 0 {
			continue
		}
		if m.option(func() {
			m.finish(index)
			m.claim(c.choices.base+position, c.part)
			m.openText(c.segments, anything, key, m.key(c.at, m.shownKey(&c)), true)
			m.member(&c, key, c.choices.object[key])
		}, todo) {
			return true
		}
	}
	return m.optionNone(index, &c, todo)
}

// optionNone leaves out a member or an item that is empty.
func (m *matcher) optionNone(index int32, c *constraint, todo []int32) bool {
	if !c.node.isWhole() || !m.compiled.parameters[c.node.open.parameter].optional() {
		return false
	}
	return m.option(func() {
		m.finish(index)
		if parameter := c.node.open.parameter; !m.bound[parameter] {
			m.bind(parameter, "")
		} else if m.values[parameter] != "" {
			m.failed = true
		}
	}, todo)
}

// searchItem tries the items of a list: first those at the position of the template's item, then none, then the others.
func (m *matcher) searchItem(index int32, todo []int32) bool {
	c := m.constraints[index]
	from, to := 0, c.choices.size
	for position, part := range m.claimed[c.choices.base : c.choices.base+c.choices.size] {
		if part != 0 && int(part)-1 < c.part {
			from = position + 1
		}
	}
	for position := to - 1; position >= from; position-- {
		if m.claimed[c.choices.base+position] != 0 {
			to = position
		}
	}
	m.steps += c.choices.size
	return m.searchItems(index, &c, from, to, todo) || m.optionNone(index, &c, todo) ||
		m.searchItems(index, &c, 0, from, todo) || m.searchItems(index, &c, to, c.choices.size, todo)
}

func (m *matcher) searchItems(index int32, c *constraint, from, to int, todo []int32) bool {
	for position := from; position < to; position++ {
		if m.steps++; m.steps > m.limit {
			return false
		}
		if m.claimed[c.choices.base+position] != 0 {
			continue
		}
		v := c.choices.names.items[position]
		if m.option(func() {
			m.finish(index)
			m.claim(c.choices.base+position, c.part)
			m.named(c, nameOfItem(v), v)
		}, todo) {
			return true
		}
	}
	return false
}

// searchList tries the list with an item, and then without it.
func (m *matcher) searchList(index int32, todo []int32) bool {
	c := m.constraints[index]
	if m.option(func() {
		m.finish(index)
		present := *c.list
		present.compare(m, c.at)
		present.next++
		m.align(present, c.at)
	}, todo) {
		return true
	}
	return m.option(func() {
		m.finish(index)
		absent := *c.list
		m.whole(&absent.template[absent.next], absent.schema, nil, absent.place(m, c.at), true)
		absent.next++
		m.align(absent, c.at)
	}, todo)
}

// differAmbiguous reports a constraint for which there is no option.
func (m *matcher) differAmbiguous(c *constraint) {
	switch c.kind {
	case constrainText:
		m.differText(c)
	case constrainKey:
		m.differ(m.key(c.at, m.shownKey(c)), c.node.wanted(), describe(nil))
	case constrainItem:
		name := c.node.get("name")
		want := "an item"
		switch {
		case m.hides(c.node):
			want = redacted
		case c.node.isWhole():
			want = "${{" + m.compiled.parameters[c.node.open.parameter].Name + "}}"
		case name.open.segments != nil:
			want = "an item with the name " + m.spellText(name.open.segments)
		}
		m.differ(c.at, want, describe(nil))
	case constrainList:
		m.differ(c.at, kindList.String(), kindList.String())
	case constrainWhole:
		m.differWhole(c)
	}
}

// wanted returns a value of the template as a difference shows it if the VirtualMachine lacks it.
func (n *node) wanted() string {
	if n.open != nil {
		return "a value"
	}
	return n.describe()
}
