package template

import (
	"fmt"
	"unicode/utf8"
)

// control is a character that a value must not contain.
type control struct {
	character rune
	position  int // in characters, from 1
}

// isControl reports whether a character may end a line, or control a terminal or a parser: the control characters C0 and C1,
// DEL, and the separators of lines and paragraphs. YAML 1.1 ends a line at U+0085, U+2028 and U+2029 too.
func isControl(r rune) bool {
	return r < ' ' || r >= 0x7F && r < 0xA0 || r == '\u2028' || r == '\u2029'
}

// control returns the first character of value that the parameter does not permit. A tab is permitted, because it ends no
// line and occurs in keys and lists that users paste.
func (p *parameter) control(value string) (found control, rejected bool) {
	for i, r := range value {
		if isControl(r) && r != '\t' && (r != '\n' || !p.Multiline) {
			return control{character: r, position: utf8.RuneCountInString(value[:i]) + 1}, true
		}
	}
	return control{}, false
}

// detail describes how to correct the value. It shows nothing else of the value.
func (c control) detail(p *parameter) string {
	switch {
	case c.character == '\n':
		return fmt.Sprintf("character %d of %s is %U, a line break: remove it, or declare the parameter with multiline: true", c.position, p.Name, c.character)
	case c.character == '\r' && p.Multiline:
		return fmt.Sprintf("character %d of %s is %U, which no parameter takes: end lines with U+000A alone", c.position, p.Name, c.character)
	default:
		return fmt.Sprintf("character %d of %s is %U, which no parameter takes: remove it", c.position, p.Name, c.character)
	}
}
