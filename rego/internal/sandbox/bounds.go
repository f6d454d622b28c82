package sandbox

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// The bounds of single built-in functions.
const (
	// maxNumberLength is the length of a number's text; a quantity needs less.
	maxNumberLength = 512
	maxExponent     = 400
	maxShift        = 512
	maxRange        = 10_000
	maxShortText    = 1 << 10
	// maxText is the length of a text that a function makes.
	maxText = 1 << 20
	// maxParts is into how many pieces a text is split.
	maxParts = 1 << 16
	// maxProduct bounds the work of functions that take the product of two sizes.
	maxProduct  = 4 << 20
	maxDocument = 256 << 10
)

var errNumber = fmt.Errorf("numbers have at most %d digits and exponents of at most %d", maxNumberLength, maxExponent)

// CheckNumber rejects numbers that take much memory when they are exact, such as 1e1000000000.
func CheckNumber(text string) error {
	if len(text) > maxNumberLength {
		return errNumber
	}
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		exponent, err := strconv.Atoi(text[at+1:])
		if err != nil || exponent > maxExponent || exponent < -maxExponent {
			return errNumber
		}
	}
	return nil
}

func numbers(operands []*ast.Term) error {
	for _, operand := range operands {
		if number, ok := operand.Value.(ast.Number); ok {
			if err := CheckNumber(string(number)); err != nil {
				return err
			}
		}
	}
	return nil
}

func shift(operands []*ast.Term) error {
	if err := numbers(operands); err != nil {
		return err
	}
	if by, ok := operands[1].Value.(ast.Number); ok {
		if n, ok := by.Int(); ok && n > maxShift {
			return fmt.Errorf("shifts are at most %d bits", maxShift)
		}
	}
	return nil
}

func numberRange(operands []*ast.Term) error {
	if err := numbers(operands); err != nil {
		return err
	}
	from, first := operands[0].Value.(ast.Number)
	to, second := operands[1].Value.(ast.Number)
	if !first || !second {
		return nil
	}
	low, okLow := from.Float64()
	high, okHigh := to.Float64()
	if !okLow || !okHigh || high-low > maxRange || low-high > maxRange {
		return fmt.Errorf("ranges have at most %d numbers", maxRange)
	}
	return nil
}

func numberText(operands []*ast.Term) error {
	text, ok := operands[0].Value.(ast.String)
	if !ok {
		return numbers(operands)
	}
	if strings.Trim(string(text), "0123456789+-.eE") != "" {
		return nil // to_number returns the error
	}
	return CheckNumber(string(text))
}

// fewNumbers is for sums and products of collections. Their results grow with every element.
func fewNumbers(operands []*ast.Term) error {
	length := 0
	add := func(term *ast.Term) error {
		if number, ok := term.Value.(ast.Number); ok {
			length += len(number)
			return CheckNumber(string(number))
		}
		return nil
	}
	var err error
	switch collection := operands[0].Value.(type) {
	case *ast.Array:
		err = collection.Iter(add)
	case ast.Set:
		err = collection.Iter(add)
	}
	if err == nil && length > maxParts {
		err = fmt.Errorf("the numbers have more than %d digits together", maxParts)
	}
	return err
}

// shortText is for functions that parse a text of a fixed format.
func shortText(operands []*ast.Term) error {
	for _, operand := range operands {
		switch value := operand.Value.(type) {
		case ast.String:
			if len(value) > maxShortText {
				return fmt.Errorf("the text is longer than %d bytes", maxShortText)
			}
		case ast.Number:
			if err := CheckNumber(string(value)); err != nil {
				return err
			}
		}
	}
	return nil
}

// zoned is for functions that take a time as a number or as [number, zone, …].
func zoned(operands []*ast.Term) error {
	for _, operand := range operands {
		parts, ok := operand.Value.(*ast.Array)
		if !ok {
			if err := shortText([]*ast.Term{operand}); err != nil {
				return err
			}
			continue
		}
		for i := range parts.Len() {
			if err := shortText([]*ast.Term{parts.Elem(i)}); err != nil {
				return err
			}
		}
		if parts.Len() > 1 {
			if zone, ok := parts.Elem(1).Value.(ast.String); ok {
				if err := CheckZone(string(zone)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// difference is for -, of numbers and of sets.
func difference(operands []*ast.Term) error {
	if _, ok := operands[0].Value.(ast.Set); ok {
		return product(operands)
	}
	return numbers(operands)
}

// product is for functions that may compare each part of one operand with each of
// another.
func product(operands []*ast.Term) error {
	return tooMuch(size(operands[0].Value) * size(operands[1].Value))
}

// unionOfMany is the same for functions of a collection of objects or sets. Sets may
// compare each element with each, because their hashes collide easily.
func unionOfMany(operands []*ast.Term) error {
	total, largest := 0, 0
	each(operands[0].Value, func(part *ast.Term) {
		n := size(part.Value)
		total += n
		largest = max(largest, n)
	})
	return tooMuch(total * largest)
}

func tooMuch(work int) error {
	if work > maxProduct {
		return errors.New("the operands are too large")
	}
	return nil
}

// size is about how many parts a value has, or how many bytes a text has.
func size(value ast.Value) int {
	if text, ok := value.(ast.String); ok {
		return 1 + len(text)
	}
	n := Weigh(value, maxProduct)
	return n
}

// shortOrFew is for functions that split a text; there is at most one part for each byte.
func shortOrFew(operands []*ast.Term) error {
	text, ok := operands[0].Value.(ast.String)
	if !ok || len(text) <= maxParts {
		return nil
	}
	if len(operands) > 1 {
		separator, ok := operands[1].Value.(ast.String)
		if ok && separator != "" && strings.Count(string(text), string(separator)) < maxParts {
			return nil
		}
	}
	return fmt.Errorf("the text has more than %d parts", maxParts)
}

// document is for texts in JSON.
func document(operands []*ast.Term) error {
	text, ok := operands[0].Value.(ast.String)
	if !ok {
		return nil
	}
	if len(text) > maxDocument {
		return fmt.Errorf("the document is longer than %d bytes", maxDocument)
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[', '{':
			if depth++; depth > MaxDepth {
				return fmt.Errorf("the document is nested more than %d deep", MaxDepth)
			}
		case ']', '}':
			depth--
		}
	}
	return nil
}
