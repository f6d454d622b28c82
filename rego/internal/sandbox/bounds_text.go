package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
)

var errLongText = fmt.Errorf("the result would be longer than %d bytes", maxText)

// lengthOf returns an upper bound of the length of a value as text.
func lengthOf(term *ast.Term) int {
	switch value := term.Value.(type) {
	case ast.String:
		return len(value)
	case ast.Number:
		return len(value)
	case ast.Boolean, ast.Null:
		return len("false")
	default:
		// Each unit of weight is a node or 64 bytes of text.
		return Weigh(value, maxText/64) * 64
	}
}

func each(collection ast.Value, do func(*ast.Term)) {
	switch values := collection.(type) {
	case *ast.Array:
		values.Foreach(do)
	case ast.Set:
		values.Foreach(do)
	}
}

func concatenation(operands []*ast.Term) error {
	separator := lengthOf(operands[0])
	length := 0
	each(operands[1].Value, func(part *ast.Term) {
		if length <= maxText {
			length += separator + lengthOf(part)
		}
	})
	if length > maxText {
		return errLongText
	}
	return nil
}

// longestOf returns the length of the longest element of an array, and 0 for other values, which sprintf rejects.
func longestOf(collection ast.Value) int {
	values, ok := collection.(*ast.Array)
	if !ok {
		return 0
	}
	longest := 0
	for i := range values.Len() {
		longest = max(longest, lengthOf(values.Elem(i)))
	}
	return longest
}

// formatted bounds the result of sprintf, by the length of the longest argument for each verb.
func formatted(operands []*ast.Term) error {
	format, ok := operands[0].Value.(ast.String)
	if !ok {
		return nil
	}
	longest := longestOf(operands[1].Value)
	verbs, digits := 0, 0
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		verbs++
		for i++; i < len(format) && strings.IndexByte("+-# 0123456789.[]*", format[i]) >= 0; i++ {
			switch {
			case format[i] == '*':
				return errors.New("widths of * are not available")
			case format[i] >= '0' && format[i] <= '9':
				if digits++; digits > 3 {
					return errors.New("widths have at most three digits")
				}
			default:
				digits = 0
			}
		}
		digits = 0
	}
	// A width or a precision is below a thousand, and a number can have as many digits as its exponent.
	if verbs > 0 && len(format)+verbs*(longest+2*1000) > maxText {
		return errLongText
	}
	return nil
}

// interpolated bounds template strings: an array of the parts, each a set of at
// most one value.
func interpolated(operands []*ast.Term) error {
	length := 0
	each(operands[0].Value, func(part *ast.Term) {
		if length <= maxText {
			length += lengthOf(part)
		}
	})
	if length > maxText {
		return errLongText
	}
	return nil
}

// replaced bounds the result of replace, and the text that is searched for: preparing the search takes time quadratic in its length
// (strings.NewReplacer).
func replaced(operands []*ast.Term) error {
	text, isText := operands[0].Value.(ast.String)
	old, isOld := operands[1].Value.(ast.String)
	by, isBy := operands[2].Value.(ast.String)
	if !isText || !isOld || !isBy {
		return nil
	}
	if err := tooMuch(len(old) * len(old)); err != nil {
		return err
	}
	if n := strings.Count(string(text), string(old)); n > 0 && len(text)+n*(len(by)-len(old)) > maxText {
		return errLongText
	}
	return nil
}

func replacedMany(operands []*ast.Term) error {
	patterns, isObject := operands[0].Value.(ast.Object)
	text, isText := operands[1].Value.(ast.String)
	if !isObject || !isText {
		return nil
	}
	// Counting takes as long as replacing.
	if err := tooMuch(patterns.Len() * len(text)); err != nil {
		return err
	}
	length, prepared := len(text), 0
	patterns.Foreach(func(old, by *ast.Term) {
		pattern, isPattern := old.Value.(ast.String)
		prepared = max(prepared, len(pattern))
		if isPattern && length <= maxText {
			length += strings.Count(string(text), string(pattern)) * lengthOf(by)
		}
	})
	if length > maxText {
		return errLongText
	}
	return tooMuch(prepared * prepared)
}

// printed bounds the length of a value as JSON, in which a byte may be escaped as six.
func printed(operands []*ast.Term) error {
	if lengthOf(operands[0]) > maxText {
		return errLongText
	}
	return nil
}

// searched is for indexof. It compares texts of ASCII in linear time, and others character by character at every position.
func searched(operands []*ast.Term) error {
	if isASCII(operands[0]) && isASCII(operands[1]) {
		return nil
	}
	return product(operands)
}

// searchedOften is for indexof_n, which returns a number for every position.
func searchedOften(operands []*ast.Term) error {
	if err := searched(operands); err != nil {
		return err
	}
	return shortOrFew(operands)
}

// trimmed is for functions that search the characters to be removed for each character of a text. For ASCII they use a table.
func trimmed(operands []*ast.Term) error {
	if isASCII(operands[1]) {
		return nil
	}
	return product(operands)
}

// isASCII returns whether a value is not a text, or a text of ASCII characters only.
func isASCII(term *ast.Term) bool {
	text, _ := term.Value.(ast.String)
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
