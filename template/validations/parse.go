package validations

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// Rule is a parsed rule.
type Rule struct {
	Name    string
	Message string
	// Warning is true if a violation is only a warning.
	Warning bool

	kind         string
	field        string // the path in a VirtualMachine
	path, valid  path
	guarded      bool // valid is given
	least, most  *bound
	short, long  *big.Int
	values       []string
	expression   *regexp.Regexp
	expressionAs string
}

// bound is a number, or a path to one.
type bound struct {
	number *big.Int
	path   path
	text   string
}

// Kinds of rules.
const (
	kindInteger = "integer"
	kindString  = "string"
	kindEnum    = "enum"
	kindRegex   = "regex"
)

// Problem is a problem of an annotation.
type Problem struct {
	// Row and Column are in the text of the annotation, counted from 1; a column counts
	// bytes.
	Row, Column int
	// Field is the place, such as [2].path.
	Field   string
	Message string
}

// String returns the problem on one line.
func (p Problem) String() string {
	if p.Field == "" {
		return fmt.Sprintf("%d:%d: %s", p.Row, p.Column, p.Message)
	}
	return fmt.Sprintf("%d:%d: %s: %s", p.Row, p.Column, p.Field, p.Message)
}

// InvalidError lists the problems of an annotation.
type InvalidError struct{ Problems []Problem }

// Error lists the problems.
func (e *InvalidError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		texts[i] = problem.String()
	}
	return strings.Join(texts, "; ")
}

// Parse reads the rules of an annotation. An empty one has none. The error is an
// *InvalidError.
func Parse(text string) ([]Rule, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	r := reader{text: text}
	if len(text) > MaxBytes {
		r.complain(0, "", "the annotation must be at most %d bytes, and is %d", MaxBytes, len(text))
		return nil, r.err()
	}
	root, err := decode(text)
	if err != nil {
		r.complain(err.offset, "", "%s", err.message)
		return nil, r.err()
	}
	if root.kind != jsonList {
		r.complain(root.offset, "", "must be a list of rules")
		return nil, r.err()
	}
	if len(root.items) > MaxRules {
		r.complain(root.offset, "", "there must be at most %d rules, and there are %d", MaxRules, len(root.items))
		return nil, r.err()
	}
	rules := make([]Rule, 0, len(root.items))
	for i := range root.items {
		rule := r.rule(&root.items[i], fmt.Sprintf("[%d]", i))
		if rule.Name != "" && slices.ContainsFunc(rules, func(other Rule) bool { return other.Name == rule.Name }) {
			r.complain(root.items[i].offset, fmt.Sprintf("[%d].name", i), "another rule is called %q as well", rule.Name)
		}
		rules = append(rules, rule)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return rules, nil
}

// reader collects problems.
type reader struct {
	text     string
	problems []Problem
}

func (r *reader) complain(offset int, field, format string, arguments ...any) {
	if len(r.problems) >= maxProblems {
		return
	}
	before := r.text[:min(offset, len(r.text))]
	row := 1 + strings.Count(before, "\n")
	column := len(before) - strings.LastIndexByte(before, '\n')
	r.problems = append(r.problems, Problem{Row: row, Column: column, Field: field, Message: fmt.Sprintf(format, arguments...)})
}

func (r *reader) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return &InvalidError{Problems: r.problems}
}

// parameters are the fields that belong to each kind of rule.
var parameters = map[string][]string{
	kindInteger: {"min", "max"},
	kindString:  {"minLength", "maxLength"},
	kindEnum:    {"values"},
	kindRegex:   {"regex"},
}

// common are the fields that every rule may have.
var common = []string{"name", "rule", "path", "message", "valid", "justWarning"}

func (r *reader) rule(n *node, at string) Rule {
	var rule Rule
	if n.kind != jsonObject {
		r.complain(n.offset, at, "must be an object")
		return rule
	}
	rule.Name = r.text1(n, at, "name")
	rule.kind = r.text1(n, at, "rule")
	rule.Message = r.text1(n, at, "message")
	rule.path = r.path(n, at, "path", true)
	rule.field = rule.path.field()
	rule.valid = r.path(n, at, "valid", false)
	rule.guarded = n.get("valid") != nil
	if warning := n.get("justWarning"); warning != nil {
		if warning.kind != jsonBool {
			r.complain(warning.offset, at+".justWarning", "must be true or false")
		}
		rule.Warning = warning.text == "true"
	}
	own, known := parameters[rule.kind]
	if rule.kind != "" && !known {
		r.complain(n.get("rule").offset, at+".rule", "must be one of integer, string, enum, regex, and is %q", short(rule.kind))
	}
	for i, key := range n.keys {
		if known && !slices.Contains(common, key) && !slices.Contains(own, key) {
			r.complain(n.items[i].offset, at+"."+short(key), "a rule of kind %s has no such field", rule.kind)
		}
	}
	switch rule.kind {
	case kindInteger:
		rule.least, rule.most = r.bound(n, at, "min"), r.bound(n, at, "max")
	case kindString:
		rule.short, rule.long = r.length(n, at, "minLength"), r.length(n, at, "maxLength")
	case kindEnum:
		rule.values = r.values(n, at)
	case kindRegex:
		rule.expression, rule.expressionAs = r.regex(n, at)
	}
	return rule
}

// text1 returns a required text.
func (r *reader) text1(n *node, at, key string) string {
	value := n.get(key)
	switch {
	case value == nil:
		r.complain(n.offset, at+"."+key, "is missing")
	case value.kind != jsonString:
		r.complain(value.offset, at+"."+key, "must be text")
	case value.text == "":
		r.complain(value.offset, at+"."+key, "must not be empty")
	default:
		return value.text
	}
	return ""
}

func (r *reader) path(n *node, at, key string, required bool) path {
	value := n.get(key)
	if value == nil && !required {
		return nil
	}
	text := r.text1(n, at, key)
	if text == "" {
		return nil
	}
	parsed, err := parsePath(text)
	if err != nil {
		r.complain(value.offset, at+"."+key, "%v", err)
	}
	return parsed
}

// bound returns the number, or the path to one, under a key; nil if there is none.
func (r *reader) bound(n *node, at, key string) *bound {
	value := n.get(key)
	if value == nil {
		return nil
	}
	if value.kind == jsonString && strings.HasPrefix(value.text, prefix) {
		parsed, err := parsePath(value.text)
		if err != nil {
			r.complain(value.offset, at+"."+key, "%v", err)
		}
		return &bound{path: parsed, text: value.text}
	}
	number := integer(value.plain())
	if number == nil {
		r.complain(value.offset, at+"."+key, "must be an integer, a quantity or a path")
		return nil
	}
	return &bound{number: number, text: short(value.text)}
}

func (r *reader) length(n *node, at, key string) *big.Int {
	value := n.get(key)
	if value == nil {
		return nil
	}
	number := integer(value.plain())
	if value.kind != jsonNumber || number == nil || number.Sign() < 0 {
		r.complain(value.offset, at+"."+key, "must be an integer that is not negative")
		return nil
	}
	return number
}

func (r *reader) values(n *node, at string) []string {
	value := n.get("values")
	if value == nil || value.kind != jsonList || len(value.items) == 0 {
		offset := n.offset
		if value != nil {
			offset = value.offset
		}
		r.complain(offset, at+".values", "must be a list of texts, with one at least")
		return nil
	}
	var texts []string
	for i := range value.items {
		if value.items[i].kind != jsonString {
			r.complain(value.items[i].offset, fmt.Sprintf("%s.values[%d]", at, i), "must be text")
			continue
		}
		texts = append(texts, value.items[i].text)
	}
	return texts
}

func (r *reader) regex(n *node, at string) (*regexp.Regexp, string) {
	text := r.text1(n, at, "regex")
	if text == "" {
		return nil, ""
	}
	offset := n.get("regex").offset
	if len(text) > maxRegex {
		r.complain(offset, at+".regex", "must be at most %d bytes, and is %d", maxRegex, len(text))
		return nil, ""
	}
	expression, err := regexp.Compile(text)
	if err != nil {
		r.complain(offset, at+".regex", "must be a regular expression in RE2 syntax: %v", err)
		return nil, ""
	}
	return expression, text
}

// short returns a text as a message shows it.
func short(text string) string {
	const longest = 128
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "…"
}
