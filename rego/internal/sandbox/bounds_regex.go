package sandbox

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

const (
	maxPattern = 4 << 10
	// maxInstructions is how large a pattern is with its repetitions written out.
	maxInstructions = 10_000
	// maxMatching bounds the length of the text times the size of the pattern.
	maxMatching = 1 << 20
)

// pattern is a regular expression and its size.
type pattern struct {
	expression   *regexp.Regexp
	instructions int
}

// compilePattern rejects patterns that take long to compile.
func compilePattern(text string) (pattern, error) {
	if len(text) > maxPattern {
		return pattern{}, fmt.Errorf("the pattern is longer than %d bytes", maxPattern)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return pattern{}, err
	}
	instructions := instructionsOf(tree)
	if instructions > maxInstructions {
		return pattern{}, errors.New("the pattern repeats too much")
	}
	expression, err := regexp.Compile(text)
	return pattern{expression, instructions}, err
}

// instructionsOf estimates the number of instructions in the program of an expression.
func instructionsOf(tree *syntax.Regexp) int {
	n := 1 + len(tree.Rune)/2 // a class has two runes for each range
	if tree.Op == syntax.OpLiteral {
		n = 1 + len(tree.Rune)
	}
	for _, part := range tree.Sub {
		n = min(n+instructionsOf(part), 1<<20)
	}
	if tree.Op == syntax.OpRepeat {
		n *= max(tree.Min, tree.Max, 1)
	}
	return min(n, 1<<20)
}

// usable returns the pattern when it is not too large for the text.
func usable(context topdown.BuiltinContext, expression, text ast.String) (*regexp.Regexp, error) {
	var (
		compiled pattern
		err      error
	)
	if spent, ok := context.Cancel.(*Budget); ok {
		compiled, err = spent.patterns.get(string(expression))
	} else {
		compiled, err = compilePattern(string(expression))
	}
	if err != nil {
		return nil, err
	}
	if len(text)*compiled.instructions > maxMatching {
		return nil, errors.New("the text is too long for the pattern")
	}
	return compiled.expression, nil
}

func regexIsValid(_ topdown.BuiltinContext, operands []*ast.Term, found func(*ast.Term) error) error {
	text, ok := operands[0].Value.(ast.String)
	if !ok {
		return found(ast.InternedTerm(false))
	}
	_, err := compilePattern(string(text))
	return found(ast.InternedTerm(err == nil))
}

var errText = errors.New("operand must be string")

// texts returns the operands at the given positions.
func texts(operands []*ast.Term, places ...int) ([]ast.String, error) {
	result := make([]ast.String, len(places))
	for i, place := range places {
		text, ok := operands[place].Value.(ast.String)
		if !ok {
			return nil, errText
		}
		result[i] = text
	}
	return result, nil
}

func regexMatch(context topdown.BuiltinContext, operands []*ast.Term, found func(*ast.Term) error) error {
	expression, isExpression := operands[0].Value.(ast.String)
	text, isText := operands[1].Value.(ast.String)
	if !isExpression || !isText {
		return errText
	}
	compiled, err := usable(context, expression, text)
	if err != nil {
		return err
	}
	return found(ast.InternedTerm(compiled.MatchString(string(text))))
}

// patternAndText are the first two operands.
func patternAndText(context topdown.BuiltinContext, operands []*ast.Term) (*regexp.Regexp, string, error) {
	given, err := texts(operands, 0, 1)
	if err != nil {
		return nil, "", err
	}
	compiled, err := usable(context, given[0], given[1])
	return compiled, string(given[1]), err
}

// limit returns the operand that limits the number of matches.
func limit(operand *ast.Term) (int, error) {
	number, ok := operand.Value.(ast.Number)
	if !ok {
		return 0, errors.New("operand must be integer number")
	}
	n, ok := number.Int()
	if !ok {
		return 0, errors.New("operand must be integer number")
	}
	if n < 0 || n > maxParts {
		n = maxParts
	}
	return n, nil
}

func regexFind(context topdown.BuiltinContext, operands []*ast.Term, found func(*ast.Term) error) error {
	compiled, text, err := patternAndText(context, operands)
	if err != nil {
		return err
	}
	n, err := limit(operands[2])
	if err != nil {
		return err
	}
	return found(textArray(compiled.FindAllString(text, n)))
}

func regexSubmatches(context topdown.BuiltinContext, operands []*ast.Term, found func(*ast.Term) error) error {
	compiled, text, err := patternAndText(context, operands)
	if err != nil {
		return err
	}
	n, err := limit(operands[2])
	if err != nil {
		return err
	}
	if (compiled.NumSubexp()+1)*min(n, len(text)+1) > 4*maxParts {
		return errors.New("the text is too long for the pattern")
	}
	matches := compiled.FindAllStringSubmatch(text, n)
	terms := make([]*ast.Term, len(matches))
	for i, match := range matches {
		terms[i] = textArray(match)
	}
	return found(ast.ArrayTerm(terms...))
}

func regexSplit(context topdown.BuiltinContext, operands []*ast.Term, found func(*ast.Term) error) error {
	compiled, text, err := patternAndText(context, operands)
	if err != nil {
		return err
	}
	return found(textArray(compiled.Split(text, maxParts)))
}

func regexReplace(context topdown.BuiltinContext, operands []*ast.Term, found func(*ast.Term) error) error {
	given, err := texts(operands, 0, 1, 2)
	if err != nil {
		return err
	}
	text, by := given[0], given[2]
	compiled, err := usable(context, given[1], text)
	if err != nil {
		return err
	}
	// The replacement may contain the match as many times as it has dollars.
	matches := compiled.FindAllStringIndex(string(text), -1)
	length, dollars := len(text), strings.Count(string(by), "$")
	for _, match := range matches {
		if length += len(by) + dollars*(match[1]-match[0]); length > maxText {
			return errLongText
		}
	}
	if len(matches) == 0 {
		return found(operands[0])
	}
	return found(ast.StringTerm(compiled.ReplaceAllString(string(text), string(by))))
}

func textArray(parts []string) *ast.Term {
	terms := make([]*ast.Term, len(parts))
	for i, part := range parts {
		terms[i] = ast.StringTerm(part)
	}
	return ast.ArrayTerm(terms...)
}
