package jsonschema

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode"
)

// Pattern returns an expression for the keyword pattern that matches the texts that a regular expression of RE2 matches as a whole. JSON Schema uses
// the syntax of ECMA-262 in Unicode mode, in which some expressions of RE2 are errors and others mean something else: (?i), \z, [[:digit:]], \pL, or an
// escaped hyphen. It is valid in RE2, too. It returns false for expressions with (?m)^ or (?m)$, which RE2 and ECMA-262 have no common form of, and for
// one without a match.
func Pattern(re2 string) (string, bool) {
	parsed, err := syntax.Parse(re2, syntax.Perl)
	if err != nil {
		return "", false
	}
	p := printer{ok: true}
	p.out.WriteByte('^')
	p.print(parsed, parsed.Op == syntax.OpAlternate)
	p.out.WriteByte('$')
	return p.out.String(), p.ok
}

// The range of surrogates, which no text has.
const surrogates, lastSurrogate = 0xD800, 0xDFFF

type printer struct {
	out strings.Builder
	ok  bool
}

// print prints an expression; grouped means that it must be one atom.
func (p *printer) print(r *syntax.Regexp, grouped bool) {
	if grouped && !isAtom(r) {
		p.out.WriteString("(?:")
		defer p.out.WriteByte(')')
	}
	switch r.Op {
	case syntax.OpEmptyMatch:
		if grouped {
			return
		}
		p.out.WriteString("(?:)")
	case syntax.OpLiteral:
		for _, c := range r.Rune {
			p.literal(c, r.Flags&syntax.FoldCase != 0)
		}
	case syntax.OpCharClass:
		p.class(r.Rune)
	case syntax.OpAnyCharNotNL:
		p.out.WriteString(`[^\n]`)
	case syntax.OpAnyChar:
		p.out.WriteString(`[\s\S]`)
	case syntax.OpBeginText:
		p.out.WriteByte('^')
	case syntax.OpEndText:
		p.out.WriteByte('$')
	case syntax.OpWordBoundary:
		p.out.WriteString(`\b`)
	case syntax.OpNoWordBoundary:
		p.out.WriteString(`\B`)
	case syntax.OpCapture:
		p.print(r.Sub[0], true)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		p.print(r.Sub[0], true)
		p.out.WriteString(quantifier(r))
	case syntax.OpConcat:
		for _, sub := range r.Sub {
			p.print(sub, sub.Op == syntax.OpAlternate)
		}
	case syntax.OpAlternate:
		for i, sub := range r.Sub {
			if i > 0 {
				p.out.WriteByte('|')
			}
			p.print(sub, sub.Op == syntax.OpEmptyMatch)
		}
	default:
		p.ok = false
	}
}

// isAtom reports whether an expression is printed as something that a quantifier applies to as a whole.
func isAtom(r *syntax.Regexp) bool {
	switch r.Op {
	case syntax.OpLiteral:
		return len(r.Rune) == 1
	case syntax.OpCharClass, syntax.OpAnyCharNotNL, syntax.OpAnyChar:
		return true
	case syntax.OpCapture:
		// Its content is printed as an atom.
		return true
	default:
		return false
	}
}

func quantifier(r *syntax.Regexp) string {
	switch {
	case r.Op == syntax.OpStar:
		return "*"
	case r.Op == syntax.OpPlus:
		return "+"
	case r.Op == syntax.OpQuest:
		return "?"
	case r.Max < 0:
		return fmt.Sprintf("{%d,}", r.Min)
	case r.Max == r.Min:
		return fmt.Sprintf("{%d}", r.Min)
	default:
		return fmt.Sprintf("{%d,%d}", r.Min, r.Max)
	}
}

func (p *printer) literal(c rune, fold bool) {
	if !fold || unicode.SimpleFold(c) == c {
		p.character(c, `\^$.*+?()[]{}|/`)
		return
	}
	p.out.WriteByte('[')
	p.character(c, `\]^-[`)
	for other := unicode.SimpleFold(c); other != c; other = unicode.SimpleFold(other) {
		p.character(other, `\]^-[`)
	}
	p.out.WriteByte(']')
}

// class prints ranges of characters; those that have the last character are printed as all but the others.
func (p *printer) class(ranges []rune) {
	negated := len(ranges) > 0 && ranges[len(ranges)-1] == unicode.MaxRune
	if negated {
		var others []rune
		next := rune(0)
		for i := 0; i < len(ranges); i += 2 {
			if ranges[i] > next {
				others = append(others, next, ranges[i]-1)
			}
			next = ranges[i+1] + 1
		}
		ranges = others
		if len(ranges) == 0 {
			p.out.WriteString(`[\s\S]`)
			return
		}
	}
	if len(ranges) == 0 {
		p.ok = false
		return
	}
	p.out.WriteByte('[')
	if negated {
		p.out.WriteByte('^')
	}
	for i := 0; i < len(ranges); i += 2 {
		p.character(ranges[i], `\]^-[`)
		if ranges[i+1] > ranges[i] {
			if ranges[i+1] > ranges[i]+1 {
				p.out.WriteByte('-')
			}
			p.character(ranges[i+1], `\]^-[`)
		}
	}
	p.out.WriteByte(']')
}

// character prints a character, escaped if it is a control character or one of special.
func (p *printer) character(c rune, special string) {
	switch {
	case c < ' ' || c >= 0x7F && c <= 0xA0:
		fmt.Fprintf(&p.out, `\x%02X`, c)
	case c >= surrogates && c <= lastSurrogate:
		p.ok = false
	case strings.ContainsRune(special, c):
		p.out.WriteByte('\\')
		p.out.WriteRune(c)
	default:
		p.out.WriteRune(c)
	}
}
