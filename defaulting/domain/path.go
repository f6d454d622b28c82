package domain

import (
	"strconv"
	"strings"
)

// Path is a path in a VirtualMachine: names of fields, and indexes of items in decimal,
// prefixed by a hash.
type Path []string

// item returns the step to an item of a list.
func item(index int) string { return "#" + strconv.Itoa(index) }

// IsItem returns the index that a step refers to, and whether it refers to one.
func IsItem(step string) (int, bool) {
	if !strings.HasPrefix(step, "#") {
		return 0, false
	}
	index, err := strconv.Atoi(step[1:])
	return index, err == nil
}

// In returns a path below the spec of the VirtualMachine's template.
func In(steps ...string) Path {
	return append(Path{"spec", "template", "spec"}, steps...)
}

// Then returns the path with more steps.
func (p Path) Then(steps ...string) Path {
	return append(p[:len(p):len(p)], steps...)
}

// String returns the path in Kubernetes notation: spec.disks[0].name.
func (p Path) String() string { return p.write(func(index string) string { return index }) }

// row returns the path as it is in the table: with [*] for every item.
func (p Path) row() string { return p.write(func(string) string { return "*" }) }

func (p Path) write(index func(string) string) string {
	var text strings.Builder
	for i, step := range p {
		if _, ok := IsItem(step); ok {
			text.WriteString("[" + index(step[1:]) + "]")
			continue
		}
		if i > 0 {
			text.WriteByte('.')
		}
		text.WriteString(step)
	}
	return text.String()
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// Pointer returns the path as a JSON pointer (RFC 6901).
func (p Path) Pointer() string {
	var text strings.Builder
	for _, step := range p {
		text.WriteByte('/')
		if _, ok := IsItem(step); ok {
			text.WriteString(step[1:])
			continue
		}
		text.WriteString(escapePointer.Replace(step))
	}
	return text.String()
}
