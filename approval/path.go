package approval

import (
	"slices"
	"strconv"
	"strings"
)

// Path is a place in a VirtualMachine. Its text is that of an override that allows just this place, except where it contains the position of a list
// item, for which overrides have no syntax.
type Path []Step

// Step is one step of a Path. Steps can be compared with ==.
type Step struct {
	kind  stepKind
	text  string // the key of a field, the name of an item
	index int
}

type stepKind uint8

const (
	stepField stepKind = iota
	stepItem
	stepIndex
	// The wildcards. In an override each stands for any key or item; in the path of a change, for the content of a map or a list as a whole.
	stepAnyField
	stepAnyItem
)

// Field is the step to a key of a map.
func Field(key string) Step { return Step{kind: stepField, text: key} }

// Item is the step to the item with that name in a list of uniquely named items.
func Item(name string) Step { return Step{kind: stepItem, text: name} }

// Index is the step to the item at that position, from 0, in any other list.
func Index(position int) Step { return Step{kind: stepIndex, index: position} }

// Name returns the key of a field or the name of an item, and whether it is an item. Other steps have none.
func (s Step) Name() (name string, item bool) { return s.text, s.kind == stepItem }

// Items reports whether the step leads to one or all items of a list.
func (s Step) Items() bool { return s.kind == stepItem || s.kind == stepIndex || s.kind == stepAnyItem }

var (
	anyField = Step{kind: stepAnyField}
	anyItem  = Step{kind: stepAnyItem}
)

// allows reports whether a step of an override allows a step of a path.
func (s Step) allows(other Step) bool {
	switch s.kind {
	case stepAnyField:
		return other.kind == stepField || other.kind == stepAnyField
	case stepAnyItem:
		return other.kind == stepItem || other.kind == stepIndex || other.kind == stepAnyItem
	default:
		return s == other
	}
}

// String returns the path in the syntax of overrides.
func (p Path) String() string {
	var b strings.Builder
	for i, step := range p {
		step.write(&b, i == 0)
	}
	return b.String()
}

func (s Step) write(b *strings.Builder, first bool) {
	switch s.kind {
	case stepField:
		if s.text == "" || strings.ContainsFunc(s.text, notInField) {
			b.WriteByte('[')
			quote(b, s.text)
			b.WriteByte(']')
			return
		}
		if !first {
			b.WriteByte('.')
		}
		b.WriteString(s.text)
	case stepItem:
		b.WriteString("[name=")
		if s.text == "" || strings.ContainsFunc(s.text, notInName) {
			quote(b, s.text)
		} else {
			b.WriteString(s.text)
		}
		b.WriteByte(']')
	case stepIndex:
		b.WriteByte('[')
		b.WriteString(strconv.Itoa(s.index))
		b.WriteByte(']')
	case stepAnyField:
		b.WriteString(".*")
	case stepAnyItem:
		b.WriteString("[*]")
	}
}

func quote(b *strings.Builder, text string) {
	b.WriteByte('"')
	for _, r := range text {
		if r == '"' || r == '\\' {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	b.WriteByte('"')
}

func notInField(r rune) bool {
	return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

func notInName(r rune) bool { return r != '.' && notInField(r) }

// sortPaths sorts paths in an order that does not depend on the iteration order of maps.
func sortPaths(paths []Path) {
	slices.SortFunc(paths, func(a, b Path) int { return slices.CompareFunc(a, b, compareSteps) })
}

func compareSteps(a, b Step) int {
	if a.kind != b.kind {
		return int(a.kind) - int(b.kind)
	}
	if a.index != b.index {
		return a.index - b.index
	}
	return strings.Compare(a.text, b.text)
}
