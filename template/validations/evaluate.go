package validations

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Violation is a rule that a VirtualMachine violates.
type Violation struct {
	// Rule is the name of the rule, Message the message of its author.
	Rule    string
	Message string
	// Field is the field that the rule refers to, as a path in the VirtualMachine.
	Field string
	// Detail describes the found and the required value. It may contain values of the VirtualMachine.
	Detail string
	// Warning is true if the violation is only a warning.
	Warning bool
	// Missing is true if the path finds nothing.
	Missing bool
}

// String returns the violation on one line.
func (v Violation) String() string { return fmt.Sprintf("%s: %s (%s)", v.Rule, v.Message, v.Detail) }

// Skipped reports whether the annotations of a VirtualMachine disable its rules.
func Skipped(annotations map[string]any) bool {
	value, found := annotations[AnnotationSkip]
	return found && value != "false"
}

// Evaluate returns the rules that the spec.template of a VirtualMachine violates: decoded JSON, with numbers as int64, float64
// or json.Number. If the VirtualMachine has an instance type, the caller inserts its sizes first.
func Evaluate(rules []Rule, template any) []Violation {
	var violations []Violation
	for i := range rules {
		if detail := rules[i].evaluate(template); detail != "" {
			violations = append(violations, Violation{
				Rule: rules[i].Name, Message: rules[i].Message, Field: rules[i].field, Detail: detail, Warning: rules[i].Warning, Missing: detail == missing,
			})
		}
	}
	return violations
}

// missing is the detail of a path that finds nothing.
const missing = "there is no such field"

// evaluate describes why the rule is violated; "" if it is satisfied.
func (r *Rule) evaluate(template any) string {
	if r.guarded && len(r.valid.find(template)) == 0 {
		return ""
	}
	found := r.path.find(template)
	if len(found) == 0 {
		return missing
	}
	for _, value := range found {
		if detail := r.one(value, template); detail != "" {
			return detail
		}
	}
	return ""
}

func (r *Rule) one(value, template any) string {
	switch r.kind {
	case kindInteger:
		return r.integer(value, template)
	case kindString:
		return r.text(value)
	case kindEnum:
		text, isScalar := scalar(value)
		if !isScalar || !slices.Contains(r.values, text) {
			return fmt.Sprintf("%s is none of %s", shown(value), short(strings.Join(r.values, ", ")))
		}
	case kindRegex:
		text, isScalar := scalar(value)
		if !isScalar || !r.expression.MatchString(text) {
			return fmt.Sprintf("%s does not match %s", shown(value), short(r.expressionAs))
		}
	}
	return ""
}

func (r *Rule) integer(value, template any) string {
	number := integer(value)
	if number == nil {
		return shown(value) + " is no integer"
	}
	for _, each := range []struct {
		bound *bound
		wrong int
		words string
	}{{r.least, -1, "less"}, {r.most, 1, "more"}} {
		if each.bound == nil {
			continue
		}
		limits := []*big.Int{each.bound.number}
		if each.bound.number == nil {
			limits = nil
			for _, found := range each.bound.path.find(template) {
				if limit := integer(found); limit != nil {
					limits = append(limits, limit)
				}
			}
			if len(limits) == 0 {
				return fmt.Sprintf("%s is no integer, with which to compare", each.bound.text)
			}
		}
		for _, limit := range limits {
			if number.Cmp(limit) == each.wrong {
				return fmt.Sprintf("%s is %s than %s", shown(value), each.words, limit)
			}
		}
	}
	return ""
}

func (r *Rule) text(value any) string {
	text, isText := value.(string)
	if !isText {
		return shown(value) + " is no text"
	}
	length := big.NewInt(int64(utf8.RuneCountInString(text)))
	switch {
	case r.short != nil && length.Cmp(r.short) < 0:
		return fmt.Sprintf("%s is shorter than %s characters", shown(value), r.short)
	case r.long != nil && length.Cmp(r.long) > 0:
		return fmt.Sprintf("%s is longer than %s characters", shown(value), r.long)
	default:
		return ""
	}
}

// scalar returns a text, a number or a bool as text.
func scalar(value any) (string, bool) {
	switch value := value.(type) {
	case string:
		return value, true
	case bool, int64, float64, json.Number:
		return fmt.Sprint(value), true
	default:
		return "", false
	}
}

func shown(value any) string {
	text, isScalar := scalar(value)
	switch {
	case !isScalar:
		return "what is there"
	case len(text) > 0:
		return short(text)
	default:
		return "the empty text"
	}
}

// integer returns a number without a fraction, also one written as a quantity; nil if it is none.
func integer(value any) *big.Int {
	text, isScalar := scalar(value)
	// Longer texts are slow to parse as quantities; no size of a VM is that long.
	const longest = 32
	if !isScalar || text == "" || len(text) > longest || text == "true" || text == "false" {
		return nil
	}
	if number, ok := new(big.Int).SetString(text, 10); ok {
		return number
	}
	if strings.ContainsAny(text, "eE") && !strings.HasSuffix(text, "E") && !strings.HasSuffix(text, "Ei") {
		return nil // an exponent may stand for any number of digits
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return nil
	}
	// 1.5Gi is an integer too.
	decimal := q.AsDec()
	number, shift := decimal.UnscaledBig(), int64(decimal.Scale())
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(max(shift, -shift)), nil)
	if shift <= 0 {
		return new(big.Int).Mul(number, power)
	}
	whole, fraction := new(big.Int).QuoRem(number, power, new(big.Int))
	if fraction.Sign() != 0 {
		return nil
	}
	return whole
}
