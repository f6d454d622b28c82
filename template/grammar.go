package template

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// contexts is a set of contexts of grammars in which a parameter is inserted into documents of the template.
type contexts uint16

const (
	yamlAnywhere contexts = 1 << iota
	yamlUnquoted
	yamlDoubleQuotes
	yamlSingleQuotes
	yamlShell         // with the encoder sh
	yamlShellUnquoted // with the encoder sh, within other text
	yamlShellAlone    // with the encoder sh, whose quotes are YAML's
	yamlShellDouble   // with the encoder sh, between double quotes
	jsonString
	jsonShell // with the encoder sh, in a string
	xmlText
	xmlAttribute
	xmlComment
	xmlCharacterData
)

// grammar lists the texts that a value must not contain in a context, because a parser would reject the document or read them as syntax.
type grammar struct {
	in          contexts
	name        string
	excluded    []string
	characters  bool // noncharacters and byte order marks are excluded, too
	hasEncoders bool
}

var grammars = [...]grammar{
	// YAML 1.2, section 5.1: U+FFFE and U+FFFF are not printable, and a byte order mark only begins a document.
	{in: yamlAnywhere, name: "YAML", characters: true, hasEncoders: true},
	// YAML 1.1 parsers, such as cloud-init's, read no tab in text without quotes.
	{in: yamlUnquoted, name: "YAML without quotes", excluded: []string{"\t"}, hasEncoders: true},
	{in: yamlDoubleQuotes, name: "YAML between double quotes", excluded: []string{`"`, `\`}, hasEncoders: true},
	{in: yamlSingleQuotes, name: "YAML between single quotes", excluded: []string{`'`}, hasEncoders: true},
	{in: yamlShell, name: "YAML with the encoder sh", excluded: []string{"\n"}, hasEncoders: true},
	{in: yamlShellUnquoted, name: "YAML with the encoder sh", excluded: []string{": ", " #"}, hasEncoders: true},
	{in: yamlShellAlone, name: "YAML with the encoder sh alone", excluded: []string{`'`}, hasEncoders: true},
	{in: yamlShellDouble, name: "YAML with the encoder sh between double quotes", excluded: []string{`'`, `"`, `\`}, hasEncoders: true},
	// RFC 8259, section 7.
	{in: jsonString, name: "a JSON string", excluded: []string{`"`, `\`, "\t", "\n"}, hasEncoders: true},
	{in: jsonShell, name: "a JSON string with the encoder sh", excluded: []string{`'`, `"`, `\`, "\t", "\n"}, hasEncoders: true},
	// XML 1.0, sections 2.2 to 2.7 and 3.1.
	{in: xmlText, name: "the text of XML", excluded: []string{"<", "&", "]]>"}, characters: true},
	{in: xmlAttribute, name: "an attribute of XML", excluded: []string{"<", "&", `"`, `'`}, characters: true},
	{in: xmlComment, name: "a comment of XML", excluded: []string{"-"}, characters: true},
	{in: xmlCharacterData, name: "character data of XML", excluded: []string{"]"}, characters: true},
}

const byteOrderMark = '\ufeff'

// isNoncharacter reports whether Unicode reserves the code point for internal use (section 23.7).
func isNoncharacter(r rune) bool { return r&0xFFFE == 0xFFFE || r >= 0xFDD0 && r <= 0xFDEF }

// unheld returns how to correct a value that a document cannot hold where the parameter is inserted.
func (p *parameter) unheld(value string) (detail string, rejected bool) {
	for i := range grammars {
		g := &grammars[i]
		if p.inserted&g.in == 0 {
			continue
		}
		if position, text := g.find(value); text != "" {
			return g.detail(p, utf8.RuneCountInString(value[:position])+1, text), true
		}
	}
	return "", false
}

// find returns the first text of a value that is excluded, and its position in bytes. The text is empty if there is none.
func (g *grammar) find(value string) (position int, text string) {
	position = len(value)
	for _, excluded := range g.excluded {
		for from := 0; from < position; {
			at := strings.Index(value[from:], excluded)
			if at < 0 || from+at >= position {
				break
			}
			if excluded == "&" && isReference(value[from+at:]) {
				from += at + len(excluded)
				continue
			}
			position, text = from+at, excluded
		}
	}
	if !g.characters {
		return position, text
	}
	at := strings.IndexFunc(value[:position], func(r rune) bool { return isNoncharacter(r) || r == byteOrderMark })
	if at < 0 {
		return position, text
	}
	_, size := utf8.DecodeRuneInString(value[at:])
	return at, value[at : at+size]
}

// isReference reports whether text begins with a reference to a character that every XML parser resolves.
func isReference(text string) bool {
	name, _, closed := strings.Cut(text, ";")
	switch name {
	case "&amp", "&lt", "&gt", "&quot", "&apos":
		return closed
	default:
		return false
	}
}

func (g *grammar) detail(p *parameter, position int, text string) string {
	what := fmt.Sprintf("is %U", []rune(text)[0])
	if utf8.RuneCountInString(text) > 1 {
		what = fmt.Sprintf("begins %q", text)
	}
	remedy := "remove it"
	if g.hasEncoders {
		remedy = fmt.Sprintf("remove it, or write ${%s|%s} as a whole value in the template", p.Name, g.encoder())
	}
	return fmt.Sprintf("character %d of %s %s, which %s cannot hold: %s", position, p.Name, what, g.name, remedy)
}

// encoder returns the name of the encoder for any value.
func (g *grammar) encoder() string {
	if g.in&(jsonString|jsonShell) != 0 {
		return encoderNames[encodeJSON]
	}
	return encoderNames[encodeYAML]
}

// documents finds the documents in a template, and sets the contexts of its parameters.
type documents struct {
	parameters []parameter
}

// markDocuments sets the contexts of the parameters, and verifies their defaults and listed values. They were declared before their places are known.
func (c *Compiled) markDocuments(vm *node, others []node, problems *problems) {
	d := documents{c.parameters}
	d.node(vm, "")
	for i := range others {
		d.node(&others[i], "")
	}
	for i := range c.parameters {
		p := &c.parameters[i]
		if p.inserted == 0 {
			continue
		}
		at := parametersAt.item(i)
		for j, value := range p.Enum {
			if detail, rejected := p.unheld(value); rejected {
				problems.invalid(at.field("enum").item(j).String(), omitted, "%s", detail)
			}
		}
		if detail, rejected := p.unheld(p.Value); rejected {
			problems.invalid(at.field("value").String(), omitted, "%s", detail)
		}
	}
}

// node searches a value, which has this key in an object.
func (d *documents) node(n *node, key string) {
	if n.open != nil && len(n.open.segments) > 1 {
		d.text(n.open.segments, key)
	}
	for i := range n.items {
		d.node(&n.items[i], "")
	}
	for i := range n.members {
		d.node(&n.members[i].value, n.members[i].key)
	}
}

func (d *documents) text(segments []segment, key string) {
	start := strings.TrimSpace(segments[0].text)
	switch {
	case strings.HasPrefix(start, "#!"):
	case strings.HasPrefix(start, "<") && isXML(segments):
		d.insideXML(segments)
	case (strings.HasPrefix(start, "{") || strings.HasPrefix(start, "[")) && json.Valid([]byte(withStandIns(segments))):
		d.insideJSON(segments)
	case isCloudConfig(start), isNetworkData(key, withStandIns(segments)):
		d.insideYAML(segments)
	}
}

// isCloudConfig reports whether cloud-init reads a text as YAML: by its first line, behind one for Jinja.
func isCloudConfig(text string) bool {
	if first, rest, found := strings.Cut(text, "\n"); found && strings.HasPrefix(first, "## template:") {
		text = rest
	}
	return strings.HasPrefix(text, "#cloud-config")
}

// isNetworkData reports whether a text is network data of cloud-init in YAML: by its key in a volume or in a Secret, and by the keys of which each format
// has one.
func isNetworkData(key, text string) bool {
	if !strings.EqualFold(key, "networkData") {
		return false
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "version:") || strings.HasPrefix(line, "network:") {
			return true
		}
	}
	return false
}

// withStandIns returns a text with 0 for each placeholder, which is a number and a word.
func withStandIns(segments []segment) string {
	var text strings.Builder
	for _, s := range segments {
		if s.parameter == noParameter {
			text.WriteString(s.text)
		} else {
			text.WriteString("0")
		}
	}
	return text.String()
}

func isXML(segments []segment) bool {
	decoder := xml.NewDecoder(strings.NewReader(withStandIns(segments)))
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	for elements := 0; ; elements++ {
		if _, err := decoder.RawToken(); errors.Is(err, io.EOF) {
			return elements > 1
		} else if err != nil {
			return false
		}
	}
}

func (d *documents) insert(s segment, plain, shell contexts) {
	switch s.encoder {
	case encodeNone:
		d.parameters[s.parameter].inserted |= plain
	case encodeShell:
		d.parameters[s.parameter].inserted |= shell
	default:
	}
}

func (d *documents) insideYAML(segments []segment) {
	var text document
	for i, s := range segments {
		if s.parameter == noParameter {
			text.literal(s.text)
			continue
		}
		plain, shell := yamlAnywhere, yamlAnywhere|yamlShell
		switch text.context() {
		case inPlain:
			plain |= yamlUnquoted
			shell |= yamlShellUnquoted | yamlUnquoted
			if text.beginsValue() && (i+1 == len(segments) || segments[i+1].parameter == noParameter) {
				shell = yamlAnywhere | yamlShell | yamlShellAlone
			}
		case inDouble:
			plain |= yamlDoubleQuotes
			shell |= yamlShellDouble
		case inSingle:
			plain |= yamlSingleQuotes
			shell |= yamlSingleQuotes
		case inBlock:
		}
		d.insert(s, plain, shell)
		text.placeholder()
	}
}

// beginsValue reports whether a scalar of YAML begins at the current position, so that a quote there is syntax.
func (d *document) beginsValue() bool {
	before := strings.TrimRight(d.current, " ")
	return before == "" || strings.HasSuffix(before, "[") || strings.HasSuffix(before, "{") ||
		before != d.current && (strings.HasSuffix(before, ":") || strings.HasSuffix(before, "-") || strings.HasSuffix(before, ",") || strings.HasSuffix(before, "?"))
}

func (d *documents) insideJSON(segments []segment) {
	quoted := false
	for _, s := range segments {
		if s.parameter != noParameter {
			if quoted {
				d.insert(s, jsonString, jsonShell)
			}
			continue
		}
		for i := 0; i < len(s.text); i++ {
			switch s.text[i] {
			case '"':
				quoted = !quoted
			case '\\':
				i++
			}
		}
	}
}

func (d *documents) insideXML(segments []segment) {
	before := ""
	for _, s := range segments {
		if s.parameter == noParameter {
			before += s.text
			continue
		}
		in := xmlText
		switch {
		case strings.LastIndex(before, "<![CDATA[") > strings.LastIndex(before, "]]>"):
			in = xmlCharacterData
		case strings.LastIndex(before, "<!--") > strings.LastIndex(before, "-->"):
			in = xmlComment
		case strings.LastIndex(before, "<") > strings.LastIndex(before, ">"):
			in = xmlAttribute
		}
		d.insert(s, in, in)
	}
}
