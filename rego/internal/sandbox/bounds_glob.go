package sandbox

import (
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// globMatch implements glob.match(pattern, delimiters, text) with a regular expression, because the time of its matching is bounded.
func globMatch(context topdown.BuiltinContext, operands []*ast.Term, found func(*ast.Term) error) error {
	given, err := texts(operands, 0, 2)
	if err != nil {
		return err
	}
	delimiters := ""
	switch list := operands[1].Value.(type) {
	case ast.Null:
	case *ast.Array:
		if list.Len() == 0 {
			delimiters = "."
		}
		for i := range list.Len() {
			delimiter, ok := list.Elem(i).Value.(ast.String)
			if !ok || utf8.RuneCountInString(string(delimiter)) != 1 {
				return errors.New("delimiters are single characters")
			}
			delimiters += string(delimiter)
		}
	default:
		return errors.New("delimiters are an array or null")
	}
	if len(given[0]) > maxShortText || len(delimiters) > maxShortText {
		return errors.New("the pattern is too long")
	}
	expression, err := globExpression(string(given[0]), delimiters)
	if err != nil {
		return err
	}
	compiled, err := usable(context, ast.String(expression), given[1])
	if err != nil {
		return err
	}
	return found(ast.InternedTerm(compiled.MatchString(string(given[1]))))
}

// globExpression translates the syntax of OPA's reference: * matches any characters but delimiters, ** any characters, ? one character that is no
// delimiter, [a-z] and [!a-z] one of a class, {a,b} one of several patterns, and \ escapes a character.
func globExpression(pattern, delimiters string) (string, error) {
	one := `(?s:.)`
	if delimiters != "" {
		one = "[^" + classText(delimiters) + "]"
	}
	var out strings.Builder
	out.WriteString(`\A(?:`)
	open := 0
	for i := 0; i < len(pattern); {
		r, width := utf8.DecodeRuneInString(pattern[i:])
		i += width
		switch {
		case r == '*' && strings.HasPrefix(pattern[i:], "*"):
			for strings.HasPrefix(pattern[i:], "*") {
				i++
			}
			out.WriteString(`(?s:.*)`)
		case r == '*':
			out.WriteString(one + "*")
		case r == '?':
			out.WriteString(one)
		case r == '[':
			end := strings.IndexByte(pattern[i:], ']')
			if end < 1 {
				return "", errors.New("the pattern has a [ without ]")
			}
			class, not := strings.CutPrefix(pattern[i:i+end], "!")
			if class == "" {
				return "", errors.New("the pattern has an empty class")
			}
			i += end + 1
			out.WriteByte('[')
			if not {
				out.WriteByte('^')
			}
			low, high, isRange := strings.Cut(class, "-")
			if isRange && utf8.RuneCountInString(low) == 1 && utf8.RuneCountInString(high) == 1 {
				out.WriteString(classText(low) + "-" + classText(high))
			} else {
				out.WriteString(classText(class))
			}
			out.WriteByte(']')
		case r == '{':
			open++
			out.WriteString("(?:")
		case r == '}' && open > 0:
			open--
			out.WriteByte(')')
		case r == ',' && open > 0:
			out.WriteByte('|')
		case r == '\\' && i < len(pattern):
			r, width = utf8.DecodeRuneInString(pattern[i:])
			i += width
			out.WriteString(regexp.QuoteMeta(string(r)))
		default:
			out.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	if open > 0 {
		return "", errors.New("the pattern has a { without }")
	}
	out.WriteString(`)\z`)
	return out.String(), nil
}

// classText returns a text as part of a character class of a regular expression.
func classText(text string) string {
	var out strings.Builder
	for _, r := range text {
		if strings.ContainsRune(`\]^-[&~`, r) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}
