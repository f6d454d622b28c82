package validations

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// node is a JSON value with its position in the text.
type node struct {
	kind   jsonKind
	text   string // of strings, numbers and bools
	offset int
	keys   []string // of an object; items are its values
	items  []node
}

type jsonKind uint8

const (
	jsonNull jsonKind = iota
	jsonBool
	jsonNumber
	jsonString
	jsonList
	jsonObject
)

// get returns the value under a key; nil if there is none, or it is null.
func (n *node) get(key string) *node {
	for i, each := range n.keys {
		if each == key && n.items[i].kind != jsonNull {
			return &n.items[i]
		}
	}
	return nil
}

// plain returns a scalar as package virtualmachine decodes it.
func (n *node) plain() any {
	switch n.kind {
	case jsonString:
		return n.text
	case jsonNumber:
		return json.Number(n.text)
	case jsonBool:
		return n.text == "true"
	default:
		return nil
	}
}

// malformed describes why a text is not JSON.
type malformed struct {
	offset  int
	message string
}

// maxDepth is the maximum depth of a rule; the values of an enum are on the third level.
const maxDepth = 8

// decode reads JSON with its positions.
func decode(text string) (*node, *malformed) {
	d := decoder{text: text, tokens: json.NewDecoder(strings.NewReader(text))}
	d.tokens.UseNumber()
	root, err := d.value(0)
	if err == nil {
		start := d.next()
		if _, trailing := d.tokens.Token(); !errors.Is(trailing, io.EOF) {
			err = &malformed{offset: start, message: "something follows the list"}
		}
	}
	return root, err
}

type decoder struct {
	text   string
	tokens *json.Decoder
}

// next returns the position of the next token.
func (d *decoder) next() int {
	at := int(d.tokens.InputOffset())
	for at < len(d.text) && strings.IndexByte(" \t\r\n,:", d.text[at]) >= 0 {
		at++
	}
	return at
}

func (d *decoder) value(depth int) (*node, *malformed) {
	n := &node{offset: d.next()}
	token, err := d.tokens.Token()
	if err != nil {
		return nil, d.malformed(n.offset, err)
	}
	if depth > maxDepth {
		return nil, &malformed{offset: n.offset, message: "is nested too deep"}
	}
	switch token := token.(type) {
	case nil:
	case bool:
		n.kind, n.text = jsonBool, "false"
		if token {
			n.text = "true"
		}
	case json.Number:
		n.kind, n.text = jsonNumber, token.String()
	case string:
		n.kind, n.text = jsonString, token
	case json.Delim:
		return n, d.inside(n, token, depth)
	}
	return n, nil
}

// inside reads a list or an object up to its end.
func (d *decoder) inside(n *node, open json.Delim, depth int) *malformed {
	n.kind = jsonList
	if open == '{' {
		n.kind = jsonObject
	}
	for d.tokens.More() {
		if n.kind == jsonObject {
			at := d.next()
			token, err := d.tokens.Token()
			if err != nil {
				return d.malformed(at, err)
			}
			key, _ := token.(string)
			n.keys = append(n.keys, key)
		}
		item, err := d.value(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, *item)
	}
	at := d.next()
	if _, err := d.tokens.Token(); err != nil {
		return d.malformed(at, err)
	}
	return nil
}

func (d *decoder) malformed(at int, err error) *malformed {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &malformed{offset: len(d.text), message: "is no JSON: it ends too early"}
	}
	return &malformed{offset: at, message: "is no JSON: " + err.Error()}
}
