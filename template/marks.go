package template

// marks are parameters, by index, that occur in some values.
type marks []bool

// child returns the member with this key, or nil. It adds the parameters that could replace the member: one
// that inserts the whole object, and those in the keys and values of members with parameters in their keys.
func (m marks) child(n *node, key string) *node {
	if n == nil {
		return nil
	}
	m.keys(n)
	return n.get(key)
}

func (m marks) keys(n *node) {
	m.open(n)
	for i := range n.members {
		if below := &n.members[i]; below.segments != nil {
			m.segments(below.segments)
			m.add(&below.value)
		}
	}
}

func (m marks) items(list *node) []*node {
	if list == nil {
		return nil
	}
	m.open(list)
	items := make([]*node, len(list.items))
	for i := range list.items {
		items[i] = &list.items[i]
		m.open(items[i])
	}
	return items
}

// add adds the parameters in a value and in everything below it.
func (m marks) add(n *node) {
	if n == nil {
		return
	}
	m.open(n)
	for i := range n.items {
		m.add(&n.items[i])
	}
	for i := range n.members {
		m.segments(n.members[i].segments)
		m.add(&n.members[i].value)
	}
}

func (m marks) open(n *node) {
	if n.open == nil {
		return
	}
	if n.open.parameter != noParameter {
		m[n.open.parameter] = true
	}
	m.segments(n.open.segments)
}

func (m marks) segments(segments []segment) {
	for _, segment := range segments {
		if segment.parameter != noParameter {
			m[segment.parameter] = true
		}
	}
}
