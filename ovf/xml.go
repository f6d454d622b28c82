package ovf

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// Element is an XML element, for content in namespaces that this package does not interpret.
type Element struct {
	// Space is the namespace, Local the local name.
	Space, Local string
	Attributes   []Attribute
	// Text is the character data of the element itself, without white space at both ends.
	Text     string
	Children []*Element

	line   int
	parent *Element
	// text collects Text until the end of the element: a text may have very many parts.
	text []byte
}

// Attribute is an XML attribute. Declarations of namespaces are not attributes.
type Attribute struct{ Space, Local, Value string }

// Attribute returns the value of an attribute with this local name: that of the format, or else that without a namespace, or else the first in any
// namespace. The order of attributes has no meaning in XML, so that it must not decide between ovf:id and the id of another product.
func (e *Element) Attribute(local string) string {
	value, _ := e.attribute(local)
	return value
}

func (e *Element) attribute(local string) (value string, found bool) {
	best := 0
	for _, a := range e.Attributes {
		rank := 1
		switch {
		case a.Space == "":
			rank = 2
		case isFormat(a.Space):
			rank = 3
		}
		if a.Local == local && rank > best {
			best, value = rank, a.Value
		}
	}
	return value, best > 0
}

// Child returns the first child with this local name, and nil if there is none.
func (e *Element) Child(local string) *Element {
	for _, c := range e.Children {
		if c.Local == local {
			return c
		}
	}
	return nil
}

// ChildText returns the text of the first child with this local name, and "" if there is none.
func (e *Element) ChildText(local string) string {
	if c := e.Child(local); c != nil {
		return c.Text
	}
	return ""
}

// path returns the names from the root, with the ID of the element if it has one.
func (e *Element) path() string {
	var names []string
	for ; e != nil; e = e.parent {
		name := e.Local
		for _, key := range []string{"id", "diskId", "key", "name"} {
			if value, found := e.attribute(key); found && value != "" {
				name += "[" + strings.Trim(shown(value), `"`) + "]"
				break
			}
		}
		names = append([]string{name}, names...)
	}
	return strings.Join(names, "/")
}

// fail returns an error at the element.
func (e *Element) fail(message string, arguments ...any) error {
	return &DescriptorError{Line: e.line, Path: e.path(), Message: fmt.Sprintf(message, arguments...)}
}

// parse reads the elements of an XML document within the limits.
func parse(r io.Reader) (*Element, error) {
	raw, err := io.ReadAll(io.LimitReader(r, MaxDescriptorBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the OVF descriptor: %w", err)
	}
	if len(raw) > MaxDescriptorBytes {
		return nil, &DescriptorError{Message: fmt.Sprintf("is larger than %d MiB", MaxDescriptorBytes>>20)}
	}
	if raw, err = utf8Of(raw); err != nil {
		return nil, &DescriptorError{Message: "is not in the encoding UTF-16 of its byte order mark: " + err.Error()}
	}
	p := &parser{decoder: xml.NewDecoder(bytes.NewReader(raw))}
	p.decoder.Strict = true
	// Only the five entities of XML itself.
	p.decoder.Entity = nil
	p.decoder.CharsetReader = func(charset string, input io.Reader) (io.Reader, error) {
		switch strings.ToLower(charset) {
		case "us-ascii", "ascii", "utf-16", "utf-16le", "utf-16be":
			// Of UTF-16 the decoder reads a translation.
			return input, nil
		case "iso-8859-1", "latin1":
			return charmap.ISO8859_1.NewDecoder().Reader(input), nil
		case "windows-1252", "cp1252":
			return charmap.Windows1252.NewDecoder().Reader(input), nil
		}
		return nil, fmt.Errorf("the encoding %s is not supported; convert the descriptor to UTF-8", shown(charset))
	}
	for {
		token, err := p.decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, p.malformed(err)
		}
		if err := p.take(token); err != nil {
			return nil, err
		}
	}
	if p.root == nil {
		return nil, &DescriptorError{Message: "contains no element"}
	}
	return p.root, nil
}

// utf8Of returns a document without its byte order mark, in UTF-8 if that is one of UTF-16.
func utf8Of(raw []byte) ([]byte, error) {
	if bytes.HasPrefix(raw, []byte("\xff\xfe")) || bytes.HasPrefix(raw, []byte("\xfe\xff")) {
		return unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM).NewDecoder().Bytes(raw)
	}
	return bytes.TrimPrefix(raw, []byte("\ufeff")), nil
}

// parser builds the tree.
type parser struct {
	decoder  *xml.Decoder
	root     *Element
	current  *Element
	depth    int
	elements int
}

func (p *parser) line() int {
	line, _ := p.decoder.InputPos()
	return line
}

func (p *parser) malformed(err error) error {
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		return &DescriptorError{Line: syntax.Line, Path: p.path(), Message: "is not well-formed XML: " + syntax.Msg}
	}
	return &DescriptorError{Line: p.line(), Path: p.path(), Message: "is not well-formed XML: " + strings.TrimPrefix(err.Error(), "xml: ")}
}

func (p *parser) path() string {
	if p.current == nil {
		return ""
	}
	return p.current.path()
}

func (p *parser) fail(message string, arguments ...any) error {
	return &DescriptorError{Line: p.line(), Path: p.path(), Message: fmt.Sprintf(message, arguments...)}
}

func (p *parser) take(token xml.Token) error {
	switch token := token.(type) {
	case xml.Directive:
		return p.fail("contains a document type or another declaration (<!…>), which are not accepted, nor are their entities; remove it")
	case xml.ProcInst:
		if token.Target != "xml" {
			return p.fail("contains the processing instruction %s; remove it", shown(token.Target))
		}
	case xml.StartElement:
		return p.start(token)
	case xml.EndElement:
		p.current.Text, p.current.text = string(bytes.TrimSpace(p.current.text)), nil
		p.current = p.current.parent
		p.depth--
	case xml.CharData:
		if p.current == nil {
			if len(bytes.TrimSpace(token)) > 0 {
				return p.fail("contains text outside of its root element")
			}
			return nil
		}
		p.current.text = append(p.current.text, token...)
	}
	return nil
}

func (p *parser) start(token xml.StartElement) error {
	if p.current == nil && p.root != nil {
		return p.fail("contains a second root element")
	}
	p.elements++
	p.depth++
	switch {
	case p.depth > MaxDepth:
		return p.fail("nests elements more than %d levels deep", MaxDepth)
	case p.elements > MaxElements:
		return p.fail("contains more than %d elements", MaxElements)
	case len(token.Attr) > MaxAttributes:
		return p.fail("the element %s has more than %d attributes", token.Name.Local, MaxAttributes)
	}
	e := &Element{Space: token.Name.Space, Local: token.Name.Local, line: p.line(), parent: p.current}
	for _, a := range token.Attr {
		if a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns" {
			continue
		}
		for _, other := range e.Attributes {
			if other.Space == a.Name.Space && other.Local == a.Name.Local {
				return p.fail("the element %s has the attribute %s twice", e.Local, a.Name.Local)
			}
		}
		e.Attributes = append(e.Attributes, Attribute{a.Name.Space, a.Name.Local, a.Value})
	}
	if p.current == nil {
		p.root = e
	} else {
		p.current.Children = append(p.current.Children, e)
	}
	p.current = e
	return nil
}
