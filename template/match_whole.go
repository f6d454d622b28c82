package template

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
)

// insertion is the value of a parameter as ${{NAME}} inserts it.
type insertion struct {
	tree node
	err  error
}

// whole compares a value that ${{NAME}} gives.
func (m *matcher) whole(n *node, s *schema, v any, at int32, kept bool) {
	if m.ignores(at) {
		return
	}
	level := uint8(levelSpelt)
	switch v.(type) {
	case nil:
		level = levelNothing
	case map[string]any, []any:
		level = levelSubtree
	case bool, int64, float64, json.Number:
		if s.shape != shapeQuantity && s.shape != shapeIntOrString {
			level = levelScalar
		}
	}
	m.add(constraint{kind: constrainWhole, level: level, node: n, schema: s, value: v, at: at, kept: kept}, nil, n.open.parameter)
}

// null compares an item that ${{NAME}} gives with one that is null.
func (m *matcher) null(n *node, s *schema, at int32) {
	if !m.ignores(at) {
		m.add(constraint{kind: constrainWhole, level: levelNothing, node: n, schema: s, at: at, kept: true, null: true}, nil, n.open.parameter)
	}
}

func (m *matcher) decideWhole(c *constraint) {
	parameter := c.node.open.parameter
	if m.bound[parameter] {
		m.insert(parameter, c)
		return
	}
	for _, value := range m.compiled.parameters[parameter].Enum {
		if c.value == nil && c.kept {
			break
		}
		if m.fits(m.read(value), value, c) && m.admits(parameter, value) {
			m.bind(parameter, value)
			return
		}
	}
	if c.level == levelSubtree {
		m.bindSubtree(parameter, c)
		return
	}
	candidates := m.candidates(parameter, c)
	for i, value := range candidates {
		if m.admits(parameter, value) {
			m.passOver(parameter, candidates[i+1:]...)
			m.bind(parameter, value)
			return
		}
	}
	if len(candidates) == 0 {
		m.differWhole(c)
		return
	}
	m.bind(parameter, candidates[0])
}

// passOver stores alternative values of a parameter, for the case that the chosen one does not fit everywhere.
func (m *matcher) passOver(parameter int, values ...string) {
	for _, value := range values {
		if len(m.passed) < maxPassed && m.linked[parameter] >= 0 && m.links[m.linked[parameter]].before >= 0 {
			m.passed = append(m.passed, passed{parameter, value})
		}
	}
}

// bindSubtree binds a parameter to an object or a list. The value may come from another place than that of c.
func (m *matcher) bindSubtree(parameter int, c *constraint) {
	smallest, found := m.subtree(parameter, c)
	if !found {
		m.differWhole(c)
		return
	}
	if m.compiled.parameters[parameter].optional() {
		m.passOver(parameter, "")
	}
	if m.bind(parameter, smallest); m.bound[parameter] {
		m.insert(parameter, c)
	}
}

// candidates returns the ways to write a value of the VirtualMachine as the value of a parameter.
func (m *matcher) candidates(parameter int, c *constraint) []string {
	switch v := c.value.(type) {
	case nil:
		if c.null && c.schema.shape == shapeAny {
			return []string{"null"}
		} else if c.null {
			return nil
		}
		var written []string
		if m.compiled.parameters[parameter].optional() {
			written = append(written, "")
		}
		if zero := zeros[c.schema.shape]; zero != "" && (!c.kept || c.schema.shape == shapeAny) {
			written = append(written, zero)
		}
		return written
	case bool:
		if v {
			return []string{"true"}
		}
		return []string{"false"}
	case string:
		m.steps += len(v)
		if !c.schema.takes(kindString, v) {
			return nil
		}
		written := []string{string(appendQuoted(nil, v, isControl))}
		if _, err := decode(v, MaxDepth, virtualMachineAt); v != "" && (errors.Is(err, errNotJSON) || c.schema.shape == shapeQuantity && err == nil) {
			written = []string{v, written[0]}
		}
		if c.schema.shape == shapeQuantity {
			written = append(written, spellings(v)...)
		}
		return written
	default:
		written := []string{numberText(v)}
		if c.schema.shape == shapeQuantity {
			written = append(written, spellings(written[0])...)
		}
		return written
	}
}

// zeros are the values that the Go types of KubeVirt do not distinguish from none.
var zeros = map[shape]string{
	shapeAny: "null", shapeInt: "0", shapeUint: "0", shapeBool: "false", shapeString: `""`, shapeStruct: "{}", shapeMap: "{}", shapeList: "[]",
}

// subtree returns the JSON of the smallest of the objects or lists in the places of the parameter: the others are larger
// because of additions by the cluster.
func (m *matcher) subtree(parameter int, c *constraint) (smallest string, found bool) {
	smallest, found = m.encode(c.value)
	for l := m.linked[parameter]; l >= 0; l = m.links[l].before {
		other := &m.constraints[m.links[l].constraint]
		if other.kind != constrainWhole || other.done || isEmpty(other.value) {
			continue
		}
		if encoded, ok := m.encode(other.value); ok && (!found || len(encoded) <= len(smallest)) {
			smallest, found = encoded, true
		}
	}
	return smallest, found
}

// encode returns v as JSON in canonical form, without members that are null.
func (m *matcher) encode(v any) (encoded string, ok bool) {
	b, ok := m.appendJSON(nil, v, MaxDepth)
	return string(b), ok
}

func (m *matcher) appendJSON(b []byte, v any, depth int) (encoded []byte, ok bool) {
	m.steps++
	m.accept(v)
	if depth == 0 {
		return b, false
	}
	ok = true
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), true
	case bool:
		if v {
			return append(b, "true"...), true
		}
		return append(b, "false"...), true
	case string:
		m.steps += len(v)
		// Control characters are escaped, so that the parameter takes the JSON.
		return appendQuoted(b, v, isControl), true
	case []any:
		b = append(b, '[')
		for i := 0; ok && i < len(v); i++ {
			if i > 0 {
				b = append(b, ',')
			}
			b, ok = m.appendJSON(b, v[i], depth-1)
		}
		return append(b, ']'), ok
	case map[string]any:
		b = append(b, '{')
		first := true
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if v[key] == nil || !ok {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(appendQuoted(b, key, isControl), ':')
			b, ok = m.appendJSON(b, v[key], depth-1)
		}
		return append(b, '}'), ok
	case int64, float64, json.Number:
		return append(b, numberText(v)...), true
	default:
		return b, false
	}
}

// insert compares what the bound value of a parameter inserts with the value in the VirtualMachine.
func (m *matcher) insert(parameter int, c *constraint) {
	value := m.values[parameter]
	if value == "" && !c.null {
		// An empty value inserts nothing, and additional fields are no difference.
		return
	}
	// Render has the same limit, so rendered VirtualMachines are not affected, and hostile ones cannot cause much work.
	if m.inserted += len(value); m.inserted > MaxRenderedBytes {
		m.differWhole(c)
		return
	}
	inserted := m.insertion(parameter)
	if m.fits(inserted, value, c) {
		return
	}
	p := &m.compiled.parameters[parameter]
	if m.attempt || p.Sensitive || inserted.err != nil || !c.schema.container() {
		m.differWhole(c)
		return
	}
	before := len(m.differences)
	m.value(&inserted.tree, c.schema, c.value, c.at, c.kept)
	if len(m.differences) == before && !m.over() {
		m.differWhole(c)
	}
}

func (s *schema) container() bool {
	return s.shape == shapeStruct || s.shape == shapeMap || s.shape == shapeList || s.shape == shapeAny
}

// insertion returns the bound value of a parameter as JSON.
func (m *matcher) insertion(parameter int) *insertion {
	if inserted := m.trees[parameter]; inserted != nil {
		return inserted
	}
	inserted := m.read(m.values[parameter])
	if m.trees == nil {
		m.trees = map[int]*insertion{}
	}
	m.trees[parameter] = inserted
	return inserted
}

func (m *matcher) read(value string) *insertion {
	m.steps += len(value)
	tree, err := decode(value, MaxDepth, virtualMachineAt)
	return &insertion{tree: tree, err: err}
}

// fits reports whether value, which was read as inserted, inserts c.value.
func (m *matcher) fits(inserted *insertion, value string, c *constraint) bool {
	if c.null && c.schema.shape != shapeAny {
		return false
	}
	if number, is := c.value.(int64); is && isInteger(value) {
		return sameNumber(value, number) && c.schema.takes(kindNumber, value)
	}
	tree := &inserted.tree
	if errors.Is(inserted.err, errNotJSON) && c.schema.takes(kindString, value) {
		tree = &node{kind: kindString, text: value}
	} else if inserted.err != nil {
		return false
	}
	return m.try(func() { m.value(tree, c.schema, c.value, c.at, c.kept) })
}

// try reports whether a comparison that binds nothing finds no difference.
func (m *matcher) try(compare func()) bool {
	attempt, failed, start := m.attempt, m.failed, m.mark()
	m.attempt, m.failed = true, false
	compare()
	same := !m.failed
	m.attempt, m.failed = attempt, failed
	m.trail, m.places, m.claimed = m.trail[:start.trail], m.places[:start.places], m.claimed[:start.claimed]
	return same
}
