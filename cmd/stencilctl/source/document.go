package source

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// document is one object in a manifest.
type document struct {
	file string
	// row is how many rows of the file precede the document.
	row  int
	text []byte
	// json is the object, path its location in the document: items and an index for an item of
	// a list.
	json []byte
	kind string
	path []any
}

// documents reads a manifest. Lists are split into their items.
func documents(f file) ([]document, error) {
	var all []document
	for _, piece := range split(f) {
		raw, err := yaml.YAMLToJSONStrict(piece.text)
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("%s: %w", piece.place(), err))
		}
		if bytes.Equal(raw, []byte("null")) {
			continue
		}
		piece.json = raw
		header, err := kindOf(raw)
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("%s: not an object: %w", piece.place(), err))
		}
		list, found := strings.CutSuffix(header, "List")
		if !found {
			piece.kind = header
			all = append(all, piece)
			continue
		}
		items, err := piece.items(list)
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("%s: %w", piece.place(), err))
		}
		all = append(all, items...)
	}
	return all, nil
}

func kindOf(raw []byte) (string, error) {
	var header struct {
		Kind string `json:"kind"`
	}
	err := json.Unmarshal(raw, &header)
	return header.Kind, err
}

// items splits a list. kind is the kind of items that specify none.
func (d *document) items(kind string) ([]document, error) {
	var list struct {
		Items []stdjson.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(d.json, &list); err != nil {
		return nil, err
	}
	var all []document
	for i, item := range list.Items {
		one := *d
		one.json, one.path = item, []any{"items", i}
		var err error
		if one.kind, err = kindOf(item); err != nil {
			return nil, err
		}
		if one.kind == "" {
			one.kind = kind
		}
		all = append(all, one)
	}
	return all, nil
}

// place identifies the document in messages.
func (d *document) place() string {
	if d.row == 0 {
		return d.file
	}
	return fmt.Sprintf("%s, document at row %d", d.file, d.row+1)
}

// split splits a file at the lines that begin a document. Such a line cannot be in a block of
// text, which is indented.
func split(f file) []document {
	var pieces []document
	begin, row, first := 0, 0, 0
	for at := 0; at < len(f.content); row++ {
		end := len(f.content)
		if newline := bytes.IndexByte(f.content[at:], '\n'); newline >= 0 {
			end = at + newline + 1
		}
		if separates(f.content[at:end]) {
			pieces = append(pieces, document{file: f.name, row: first, text: f.content[begin:at]})
			begin, first = end, row+1
		}
		at = end
	}
	return append(pieces, document{file: f.name, row: first, text: f.content[begin:]})
}

func separates(line []byte) bool {
	rest, found := bytes.CutPrefix(line, []byte("---"))
	rest = bytes.TrimSpace(rest)
	return found && (len(rest) == 0 || rest[0] == '#')
}

// node returns the YAML node at a path below the object, or nil when there is none.
func (d *document) node(path ...any) *yamlv3.Node {
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(d.text, &root); err != nil || len(root.Content) == 0 {
		return nil
	}
	node := root.Content[0]
	for _, step := range append(append([]any{}, d.path...), path...) {
		if node = child(node, step); node == nil {
			return nil
		}
	}
	return node
}

func child(node *yamlv3.Node, step any) *yamlv3.Node {
	if node.Kind == yamlv3.AliasNode {
		node = node.Alias
	}
	switch step := step.(type) {
	case int:
		if node.Kind == yamlv3.SequenceNode && step < len(node.Content) {
			return node.Content[step]
		}
	case string:
		if node.Kind != yamlv3.MappingNode {
			return nil
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1]
			}
		}
	}
	return nil
}
