package template

import "slices"

// names finds items by name in a list in which every item has a unique name.
type names struct {
	items []any
	index map[string]int // of a list that is not short
}

func nameOfItem(item any) string {
	object, _ := item.(map[string]any)
	name, _ := object["name"].(string)
	return name
}

// namesOf returns the items by name. all is false unless each item has a unique name.
func namesOf(items []any) (n *names, all bool) {
	const short = 8
	n = &names{items: items}
	if len(items) > short {
		n.index = make(map[string]int, len(items))
	}
	for i, item := range items {
		name := nameOfItem(item)
		if _, again := n.find(name, i); name == "" || again {
			return nil, false
		}
		if n.index != nil {
			n.index[name] = i
		}
	}
	return n, true
}

// find searches a name among the first items.
func (n *names) find(name string, first int) (int, bool) {
	if n.index != nil {
		i, found := n.index[name]
		return i, found
	}
	for i, item := range n.items[:first] {
		if nameOfItem(item) == name {
			return i, true
		}
	}
	return 0, false
}

// hasNames reports whether the items of a template's list may all have names of their own: they are objects with a name, or
// given by a parameter.
func (n *node) hasNames() bool {
	var literal []string
	for i := range n.items {
		item := &n.items[i]
		if item.isWhole() {
			continue
		}
		switch name := item.get("name"); {
		case name == nil || name.kind != kindString || name.open == nil && name.text == "":
			return false
		case name.open == nil:
			literal = append(literal, name.text)
		}
	}
	slices.Sort(literal)
	return len(slices.Compact(literal)) == len(literal)
}

// isWhole reports whether a parameter gives n as a whole.
func (n *node) isWhole() bool { return n.open != nil && n.open.parameter != noParameter }

// compareLists compares a list with one of the VirtualMachine: by name if all items have one, and otherwise by position.
func (m *matcher) compareLists(n *node, s *schema, v any, at int32) {
	items, is := v.([]any)
	if !is && v != nil {
		m.differ(at, kindList.String(), describe(v))
		return
	}
	if len(n.items) == 0 {
		return
	}
	elem := anything
	if s.shape == shapeList {
		elem = s.elem
	}
	m.steps += len(items)
	for _, item := range items {
		m.accept(item)
	}
	found, named := namesOf(items)
	if named && n.hasNames() {
		m.byName(n, elem, found, at)
		return
	}
	m.align(alignment{template: n.items, items: items, schema: elem, named: named && len(items) > 0}, at)
}

// byName compares lists by the names of their items. Additional items of the VirtualMachine are no difference.
func (m *matcher) byName(n *node, elem *schema, found *names, at int32) {
	items := &choices{names: found, base: len(m.claimed), size: len(found.items)}
	m.claimed = append(m.claimed, make([]int32, items.size)...)
	for i := range n.items {
		item := &n.items[i]
		switch name := item.get("name"); {
		case m.over():
			return
		case item.isWhole():
			m.add(constraint{kind: constrainItem, node: item, schema: elem, at: at, choices: items, part: i}, nil, item.open.parameter)
		case name.isWhole():
			m.add(constraint{kind: constrainItem, node: item, schema: elem, at: at, choices: items, part: i}, nil, name.open.parameter)
		case name.open != nil:
			m.add(constraint{kind: constrainItem, node: item, schema: elem, at: at, choices: items, part: i}, name.open.segments, noParameter)
		default:
			m.item(&constraint{node: item, schema: elem, at: at, choices: items, part: i}, name.text)
		}
	}
}

// item compares an item of the template with the item of the same name.
func (m *matcher) item(c *constraint, name string) {
	var v any
	if position, found := c.choices.names.find(name, c.choices.size); found {
		// Two items of the template with one name make a different list.
		if m.claim(c.choices.base+position, c.part) {
			v = c.choices.names.items[position]
		}
	}
	m.named(c, name, v)
}

// named compares an item of the template with v, which has this name.
func (m *matcher) named(c *constraint, name string, v any) {
	if m.hides(c.node) {
		name = redacted
	}
	m.value(c.node, c.schema, v, m.place(place{kind: placeName, parent: c.at, name: name}), true)
}

// hides reports whether the name of an item contains a sensitive parameter.
func (m *matcher) hides(item *node) bool {
	if item.isWhole() {
		return m.compiled.parameters[item.open.parameter].Sensitive
	}
	name := item.get("name")
	if name.isWhole() {
		return m.compiled.parameters[name.open.parameter].Sensitive
	}
	return name.open != nil && m.compiled.sensitive(name.open.segments)
}

// decideItem compares an item after its name is bound.
func (m *matcher) decideItem(c *constraint) {
	if !c.node.isWhole() {
		m.item(c, m.nameOf(c.node.get("name")))
		return
	}
	parameter := c.node.open.parameter
	if m.values[parameter] == "" {
		return
	}
	name := m.insertion(parameter).tree.get("name")
	if name == nil || name.kind != kindString || name.text == "" {
		m.differWhole(c)
		return
	}
	m.item(c, name.text)
}

// nameOf returns the text of a name with parameters, all of them bound.
func (m *matcher) nameOf(name *node) string {
	if !name.isWhole() {
		return m.join(name.open.segments)
	}
	if tree := &m.insertion(name.open.parameter).tree; tree.kind == kindString {
		return tree.text
	}
	return m.values[name.open.parameter]
}

// join returns the text of segments, all of them bound. It is empty if it would exceed the limit of Render.
func (m *matcher) join(segments []segment) string {
	size := 0
	for i := range segments {
		text, _ := m.textOf(segments[i])
		size += len(text)
	}
	if m.inserted += size; m.inserted > MaxRenderedBytes {
		return ""
	}
	m.steps += size
	joined := make([]byte, 0, size)
	for i := range segments {
		text, _ := m.textOf(segments[i])
		joined = append(joined, text...)
	}
	return string(joined)
}

// alignment is a comparison of lists by position, some items of which may be left out. The items before the next ones have
// been compared.
type alignment struct {
	template []node
	items    []any
	next     int // of template
	position int // of items
	schema   *schema
	named    bool // the items have names, but the template's do not
}

// align compares lists until it is unclear which items are left out.
func (m *matcher) align(a alignment, at int32) {
	certain, uncertain := 0, 0
	for i := a.next; i < len(a.template); i++ {
		switch optional, known, empty := m.mayLackItem(&a.template[i]); {
		case optional && !known:
			uncertain++
		case !empty:
			certain++
		}
	}
	m.steps += len(a.template) - a.next
	surplus := len(a.items) - a.position - certain
	for ; a.next < len(a.template) && !m.over(); a.next++ {
		item := &a.template[a.next]
		optional, known, empty := m.mayLackItem(item)
		switch {
		case empty:
			continue
		case !optional || known:
		case surplus <= 0:
			m.whole(item, a.schema, nil, a.place(m, at), true)
			continue
		case surplus < uncertain:
			m.add(constraint{kind: constrainList, at: at, list: &a}, nil, item.open.parameter)
			return
		default:
			surplus--
			uncertain--
		}
		a.compare(m, at)
	}
	for ; a.position < len(a.items) && !m.over(); a.position++ {
		m.differ(a.place(m, at), describe(nil), describe(a.items[a.position]))
	}
}

// compare compares the next item of the template with the next of the VirtualMachine.
func (a *alignment) compare(m *matcher, at int32) {
	var v any
	there := a.position < len(a.items)
	if there {
		v = a.items[a.position]
	}
	item, place := &a.template[a.next], a.place(m, at)
	if there && v == nil && item.isWhole() {
		m.null(item, a.schema, place)
	} else {
		m.value(item, a.schema, v, place, true)
	}
	a.position++
}

func (a *alignment) place(m *matcher, at int32) int32 {
	secret := a.next < len(a.template) && a.template[a.next].isWhole() && m.hides(&a.template[a.next])
	if a.named && a.position < len(a.items) && !secret {
		return m.place(place{kind: placeName, parent: at, name: nameOfItem(a.items[a.position])})
	}
	return m.place(place{kind: placeIndex, parent: at, index: int32(a.position)})
}

// mayLackItem reports whether an item may be left out, whether that is determined already, and whether it is left out.
func (m *matcher) mayLackItem(item *node) (optional, known, empty bool) {
	if !item.isWhole() || !m.compiled.parameters[item.open.parameter].optional() {
		return false, true, false
	}
	known = m.bound[item.open.parameter]
	return true, known, known && m.values[item.open.parameter] == ""
}
