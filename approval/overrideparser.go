package approval

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxOverrideLength is how many bytes an override may have.
const MaxOverrideLength = 512

// SyntaxError describes a syntax error in an override and its position.
type SyntaxError struct {
	// Column counts characters from 1.
	Column  int
	Message string
}

// Error returns the message with its position.
func (e *SyntaxError) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Message) }

// ParseOverride reads an override; the package comment has its grammar. An error
// is a *SyntaxError.
func ParseOverride(text string) (Override, error) {
	p := overrideParser{text: text}
	steps, err := p.override()
	if err != nil {
		return Override{}, err
	}
	return Override{steps: steps}, nil
}

type overrideParser struct {
	text string
	at   int // in bytes
}

func (p *overrideParser) override() (Path, error) {
	if len(p.text) > MaxOverrideLength {
		return nil, &SyntaxError{Column: 1, Message: fmt.Sprintf("an override has at most %d bytes, this one has %d", MaxOverrideLength, len(p.text))}
	}
	for at, r := range p.text {
		if r == utf8.RuneError && !strings.HasPrefix(p.text[at:], string(utf8.RuneError)) {
			return nil, p.errorAt(at, "this is not UTF-8 text")
		}
	}
	first, err := p.field("a field, such as spec")
	if err != nil {
		return nil, err
	}
	steps := Path{first}
	for p.at < len(p.text) {
		step, err := p.step()
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, p.root(steps)
}

// root checks that the path begins where overrides are possible.
func (p *overrideParser) root(steps Path) error {
	switch {
	case steps[0] == Field("spec"):
		return nil
	case steps[0] != Field("metadata"):
		return p.errorAt(0, "an override begins with spec, metadata.labels or metadata.annotations")
	case len(steps) < 2 || steps[1] != Field("labels") && steps[1] != Field("annotations"):
		return p.errorAt(min(len("metadata."), len(p.text)), "of metadata, only labels and annotations can be overridden")
	default:
		return nil
	}
}

func (p *overrideParser) step() (Step, error) {
	switch p.text[p.at] {
	case '.':
		p.at++
		if p.takes("*") {
			return anyField, p.end("*")
		}
		return p.field("a field or * after the dot")
	case '[':
		p.at++
		return p.bracket()
	default:
		return Step{}, p.error("expected a dot, [ or the end, found %s", p.found())
	}
}

// end checks that a new step begins after a wildcard.
func (p *overrideParser) end(what string) error {
	if p.at == len(p.text) || p.text[p.at] == '.' || p.text[p.at] == '[' {
		return nil
	}
	return p.error("%s stands alone; expected a dot, [ or the end, found %s", what, p.found())
}

func (p *overrideParser) field(expected string) (Step, error) {
	key := p.span(notInField)
	if key == "" {
		return Step{}, p.error("expected %s, found %s", expected, p.found())
	}
	return Field(key), nil
}

func (p *overrideParser) bracket() (Step, error) {
	var step Step
	switch {
	case p.takes("*"):
		step = anyItem
	case p.takes("name="):
		name, err := p.name()
		if err != nil {
			return Step{}, err
		}
		step = Item(name)
	case strings.HasPrefix(p.text[p.at:], `"`):
		key, err := p.quoted()
		if err != nil {
			return Step{}, err
		}
		step = Field(key)
	default:
		return Step{}, p.error(`expected *, name=NAME or a "KEY" in quotes after [, found %s`, p.found())
	}
	if !p.takes("]") {
		return Step{}, p.error("expected ], found %s", p.found())
	}
	return step, nil
}

func (p *overrideParser) name() (string, error) {
	if strings.HasPrefix(p.text[p.at:], `"`) {
		start := p.at
		name, err := p.quoted()
		if err == nil && name == "" {
			return "", p.errorAt(start, "items without a name cannot be chosen")
		}
		return name, err
	}
	name := p.span(notInName)
	if name == "" {
		return "", p.error("expected the name of an item, found %s", p.found())
	}
	return name, nil
}

func (p *overrideParser) quoted() (string, error) {
	start := p.at
	p.at++
	var b strings.Builder
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		switch c {
		case '"':
			return b.String(), nil
		case '\\':
			if p.at == len(p.text) || p.text[p.at] != '"' && p.text[p.at] != '\\' {
				return "", p.errorAt(p.at-1, `in quotes, \ stands only before " and \`)
			}
			b.WriteByte(p.text[p.at])
			p.at++
		default:
			b.WriteByte(c)
		}
	}
	return "", p.errorAt(start, "the quote is not closed")
}

// takes advances past text if it comes next, and reports whether it did.
func (p *overrideParser) takes(text string) bool {
	if !strings.HasPrefix(p.text[p.at:], text) {
		return false
	}
	p.at += len(text)
	return true
}

// span advances to the first character that is outside, and returns the text before it.
func (p *overrideParser) span(outside func(rune) bool) string {
	rest := p.text[p.at:]
	end := strings.IndexFunc(rest, outside)
	if end < 0 {
		end = len(rest)
	}
	p.at += end
	return rest[:end]
}

func (p *overrideParser) found() string {
	if p.at == len(p.text) {
		return "the end"
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return fmt.Sprintf("%q", r)
}

func (p *overrideParser) error(format string, arguments ...any) error {
	return p.errorAt(p.at, fmt.Sprintf(format, arguments...))
}

func (p *overrideParser) errorAt(at int, message string) error {
	return &SyntaxError{Column: utf8.RuneCountInString(p.text[:at]) + 1, Message: message}
}
