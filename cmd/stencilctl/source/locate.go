package source

import (
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Locator finds the positions of one object in its file.
type Locator struct {
	root *yamlv3.Node
	row  int
}

// Locator returns the Locator of the object.
func (o *Object) Locator() Locator {
	return Locator{root: o.document.node(), row: o.document.row}
}

// Locate returns the row and the column, counted from 1, of a field path in the format of field
// errors: spec.parameters[0].name, metadata.labels[example.com/team]. For a field that does not
// exist, it is the position of the nearest parent. With key it is the position of the field's
// name, otherwise that of its value if the value is a scalar.
func (l Locator) Locate(path string, key bool) (row, column int) {
	if l.root == nil {
		return l.row + 1, 1
	}
	at, value := l.root, l.root
	for rest := path; rest != ""; {
		name, next, after := step(value, rest)
		if next == nil {
			break
		}
		at, value, rest = next, next, after
		if name != nil && (key || next.Kind != yamlv3.ScalarNode) {
			at = name
		}
	}
	return l.row + at.Line, at.Column
}

// step goes one step along a path. name is the key that led there, nil in a list.
func step(node *yamlv3.Node, path string) (name, value *yamlv3.Node, rest string) {
	if node.Kind == yamlv3.AliasNode {
		node = node.Alias
	}
	path = strings.TrimPrefix(path, ".")
	switch node.Kind {
	case yamlv3.SequenceNode:
		text, after, found := strings.Cut(strings.TrimPrefix(path, "["), "]")
		index, err := strconv.Atoi(text)
		if found && err == nil && index >= 0 && index < len(node.Content) {
			return nil, node.Content[index], after
		}
	case yamlv3.MappingNode:
		// Keys may contain dots and brackets, so the longest match is used.
		longest := -1
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i].Value
			after, found := strings.CutPrefix(path, "["+key+"]")
			if !found {
				after, found = strings.CutPrefix(path, key)
				found = found && (after == "" || after[0] == '.' || after[0] == '[')
			}
			if found && len(key) > longest {
				longest = len(key)
				name, value, rest = node.Content[i], node.Content[i+1], after
			}
		}
	}
	return name, value, rest
}
