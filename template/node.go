package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// node is a JSON value. Numbers retain their digits, and objects the order of their members.
type node struct {
	kind    kind
	text    string // content of a string, literal of other scalars
	items   []node
	members []member
	open    *open // nil if this value contains no parameter
}

type member struct {
	key      string
	segments []segment // of a key with references, instead of key
	value    node
}

type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindList
	kindObject
)

func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "an object"}[k]
}

// shown returns the value as a cause shows it: scalars only.
func (n *node) shown() any {
	switch n.kind {
	case kindBool:
		return n.text == "true"
	case kindNumber:
		if len(n.text) > maxShown {
			return omitted
		}
		return json.Number(n.text)
	case kindString:
		return shown(n.text)
	default:
		return omitted
	}
}

// get returns the member with this key, or nil.
func (n *node) get(key string) *node {
	for i := range n.members {
		if n.members[i].key == key && n.members[i].segments == nil {
			return &n.members[i].value
		}
	}
	return nil
}

// at returns the value at the end of a path of keys, or nil.
func (n *node) at(path ...string) *node {
	for _, key := range path {
		if n == nil {
			return nil
		}
		n = n.get(key)
	}
	return n
}

// object returns the member with this key, and adds an empty object if there is none.
func (n *node) object(key string) *node {
	if found := n.get(key); found != nil {
		return found
	}
	n.members = append(n.members, member{key: key, value: node{kind: kindObject}})
	return &n.members[len(n.members)-1].value
}

// decoder reads one JSON document. In addition to what encoding/json rejects, it rejects nesting that is too deep, duplicate
// keys, and anything that follows the document.
type decoder struct {
	tokens *json.Decoder
	depth  int // number of further levels that are allowed
}

// errTooDeep is returned for a document that is nested deeper than allowed.
var errTooDeep = errors.New("nested too deep")

// errNotJSON is returned for a text that is not JSON. It has no details, because the messages of encoding/json show some of
// the text.
var errNotJSON = errors.New("not JSON")

// decode reads document, which may be nested depth levels deep. An error with a place is a *field.Error.
func decode(document string, depth int, at *location) (node, error) {
	d := decoder{tokens: json.NewDecoder(strings.NewReader(document)), depth: depth}
	d.tokens.UseNumber()
	value, err := d.value(at)
	if err != nil {
		return node{}, err
	}
	if _, err := d.tokens.Token(); !errors.Is(err, io.EOF) {
		return node{}, fmt.Errorf("%w: the value ends before byte %d", errNotJSON, d.tokens.InputOffset())
	}
	return value, nil
}

func (d *decoder) value(at *location) (node, error) {
	token, err := d.token()
	if err != nil {
		return node{}, err
	}
	switch token := token.(type) {
	case json.Delim:
		if d.depth == 0 {
			return node{}, errTooDeep
		}
		d.depth--
		defer func() { d.depth++ }()
		if token == '{' {
			return d.object(at)
		}
		return d.list(at)
	case json.Number:
		return node{kind: kindNumber, text: string(token)}, nil
	case string:
		return node{kind: kindString, text: token}, nil
	case bool:
		if token {
			return node{kind: kindBool, text: "true"}, nil
		}
		return node{kind: kindBool, text: "false"}, nil
	default:
		return node{kind: kindNull, text: "null"}, nil
	}
}

func (d *decoder) object(at *location) (node, error) {
	object := node{kind: kindObject}
	for d.tokens.More() {
		token, err := d.token()
		if err != nil {
			return node{}, err
		}
		key := token.(string)
		value, err := d.value(at.member(key))
		if err != nil {
			return node{}, err
		}
		object.members = append(object.members, member{key: key, value: value})
	}
	if key, found := repeated(object.members); found {
		return node{}, field.Duplicate(field.NewPath(at.member(key).String()), shown(key))
	}
	_, err := d.token()
	return object, err
}

func (d *decoder) list(at *location) (node, error) {
	list := node{kind: kindList}
	for d.tokens.More() {
		item, err := d.value(at.item(len(list.items)))
		if err != nil {
			return node{}, err
		}
		list.items = append(list.items, item)
	}
	_, err := d.token()
	return list, err
}

func (d *decoder) token() (json.Token, error) {
	token, err := d.tokens.Token()
	if err != nil {
		return nil, fmt.Errorf("%w: something is wrong at byte %d", errNotJSON, d.tokens.InputOffset())
	}
	return token, nil
}

// repeated returns a key that occurs twice.
func repeated(members []member) (string, bool) {
	const few = 16
	if len(members) <= few {
		for i := range members {
			for j := range i {
				if members[i].key == members[j].key {
					return members[i].key, true
				}
			}
		}
		return "", false
	}
	seen := make(map[string]struct{}, len(members))
	for i := range members {
		if _, found := seen[members[i].key]; found {
			return members[i].key, true
		}
		seen[members[i].key] = struct{}{}
	}
	return "", false
}

// appendCanonical appends the value as JSON without white space, with the keys of
// objects in byte order.
func (n *node) appendCanonical(b []byte) []byte {
	switch n.kind {
	case kindString:
		return appendString(b, n.text)
	case kindList:
		b = append(b, '[')
		for i := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = n.items[i].appendCanonical(b)
		}
		return append(b, ']')
	case kindObject:
		b = append(b, '{')
		for i, at := range byKey(n.members) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, n.members[at].key), ':')
			b = n.members[at].value.appendCanonical(b)
		}
		return append(b, '}')
	default:
		return append(b, n.text...)
	}
}

// byKey returns the indices of the members in the byte order of their keys. It does not reorder the members.
func byKey(members []member) []int {
	order := make([]int, len(members))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(members[a].key, members[b].key) })
	return order
}
