package template

import (
	"slices"
	"strconv"
	"strings"
)

// place is a place in a VirtualMachine, as a step from another one. Places are identified by their indices in
// matcher.places, the first of which is the object itself.
type place struct {
	kind   placeKind
	parent int32
	index  int32
	name   string
	spelt  string // text of the step for ignores, once computed
}

type placeKind uint8

const (
	placeKey   placeKind = iota // of an object
	placeName                   // an item of a list in which every item has a unique name
	placeIndex                  // an item of any other list
)

func (m *matcher) place(p place) int32 {
	m.places = append(m.places, p)
	return int32(len(m.places) - 1)
}

func (m *matcher) key(at int32, name string) int32 {
	return m.place(place{kind: placeKey, parent: at, name: name})
}

// trace returns the places on the way to at, without the object itself.
func (m *matcher) trace(at int32) []*place {
	var trace []*place
	for ; at > 0; at = m.places[at].parent {
		trace = append(trace, &m.places[at])
	}
	slices.Reverse(trace)
	return trace
}

// path returns a place in the form in which an approval lists overrides.
func (m *matcher) path(at int32) string {
	var b strings.Builder
	for _, p := range m.trace(at) {
		name, plain := shown(p.name).(string), isPlain(p.name)
		switch {
		case p.kind == placeIndex:
			b.WriteString("[" + strconv.Itoa(int(p.index)) + "]")
		case p.kind == placeName && plain:
			b.WriteString("[name=" + name + "]")
		case p.kind == placeName:
			b.WriteString("[name=" + quoted(name) + "]")
		case plain && !strings.Contains(p.name, "."):
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(name)
		default:
			b.WriteString("[" + quoted(name) + "]")
		}
	}
	return b.String()
}

func isPlain(name string) bool {
	for i := 0; i < len(name); i++ {
		if c := name[i]; !isWord(c) && c != '-' && c != '.' {
			return false
		}
	}
	return name != ""
}

func quoted(text string) string { return string(appendString(nil, text)) }

// ignores reports whether the caller excludes a place from the comparison.
func (m *matcher) ignores(at int32) bool {
	if len(m.ignored) == 0 {
		return false
	}
	m.spelt = m.spelt[:0]
	for _, p := range m.trace(at) {
		switch {
		case p.kind == placeKey:
			p.spelt = p.name
		case p.spelt != "":
		case p.kind == placeName:
			p.spelt = "[name=" + p.name + "]"
		default:
			p.spelt = "[" + strconv.Itoa(int(p.index)) + "]"
		}
		m.spelt = append(m.spelt, p.spelt)
	}
	for _, ignored := range m.ignored {
		if ignored(m.spelt...) {
			return true
		}
	}
	return false
}
