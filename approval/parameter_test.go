package approval_test

import (
	"strings"
	"testing"

	"github.com/vmstencil/stencil/approval"
)

func TestParameters(t *testing.T) {
	long := strings.Repeat("a", approval.MaxMatchedBytes+1)
	for _, tc := range []struct {
		name, constraint string
		value            string
		others           map[string]string
		want             string // a part of the cause; empty when the value is allowed
	}{
		{name: "one of the allowed values", constraint: "allowed: [a, b]", value: "b"},
		{name: "a value beside the allowed", constraint: "allowed: [a, b]", value: "c", want: `parameters[P]: Invalid value: "c": must be one of "a", "b"`},
		{name: "a value beside the only one", constraint: "allowed: [a]", value: "A", want: `must be "a"`},
		{name: "an empty value that is not listed", constraint: "allowed: [a]", value: "", want: `must be "a"`},
		{name: "an empty value that is listed", constraint: "allowed: ['']", value: ""},

		{name: "a match", constraint: "pattern: 'web-[a-z]+'", value: "web-a"},
		{name: "a match of a part", constraint: "pattern: 'web-[a-z]+'", value: "my-web-a", want: "must match web-[a-z]+ as a whole"},
		{name: "a match of the first line", constraint: "pattern: 'web-[a-z]+'", value: "web-a\nx", want: "as a whole"},
		{name: "a match before a line feed", constraint: "pattern: 'web-[a-z]+'", value: "web-a\n", want: "as a whole"},
		{name: "alternatives are anchored too", constraint: "pattern: 'a|b'", value: "ax", want: "as a whole"},
		{name: "a pattern that brings its own anchors", constraint: "pattern: '^a$'", value: "a"},
		{name: "anchors at lines stay inside", constraint: "pattern: '(?m)^a$'", value: "b\na", want: "as a whole"},
		{name: "too long to be matched", constraint: "pattern: 'a*'", value: long, want: "at most 16384 bytes"},

		{name: "an integer within bounds", constraint: "minimum: 1, maximum: 8", value: "8"},
		{name: "below", constraint: "minimum: 1", value: "0", want: "must be at least 1"},
		{name: "above", constraint: "maximum: 8", value: "9", want: "must be at most 8"},
		{name: "above every machine integer", constraint: "maximum: 8", value: "99999999999999999999999", want: "must be at most 8"},
		{name: "above, with only a minimum", constraint: "minimum: 8", value: "99999999999999999999999"},
		{name: "below every machine integer", constraint: "minimum: 8", value: "-99999999999999999999999", want: "must be at least 8"},
		{name: "at the end of the machine integers", constraint: "maximum: 9223372036854775807", value: "9223372036854775807"},
		{name: "one behind it", constraint: "maximum: 9223372036854775807", value: "9223372036854775808", want: "must be at most 9223372036854775807"},
		{name: "at the beginning of the machine integers", constraint: "minimum: -9223372036854775808", value: "-9223372036854775808"},
		{name: "one before it", constraint: "minimum: -9223372036854775808", value: "-9223372036854775809", want: "must be at least"},
		{name: "a sign", constraint: "minimum: 1", value: "+4", want: "must be an integer"},
		{name: "a leading zero", constraint: "maximum: 8", value: "007", want: "must be an integer"},
		{name: "a fraction", constraint: "maximum: 8", value: "1.5", want: "must be an integer"},
		{name: "an exponent", constraint: "maximum: 8", value: "1e3", want: "must be an integer"},
		{name: "a quantity", constraint: "maximum: 8", value: "4Gi", want: "must be an integer"},
		{name: "hexadecimal", constraint: "maximum: 8", value: "0x4", want: "must be an integer"},
		{name: "white space", constraint: "maximum: 8", value: " 4", want: "must be an integer"},
		{name: "other digits", constraint: "maximum: 8", value: "４", want: "must be an integer"},
		{name: "only a sign", constraint: "maximum: 8", value: "-", want: "must be an integer"},
		{name: "nothing", constraint: "maximum: 8", value: "", want: "must be an integer"},

		{name: "an expression that holds", constraint: "expression: \"quantity(value).compareTo(quantity('16Gi')) <= 0\"", value: "8Gi"},
		{name: "an expression that does not", constraint: "expression: \"quantity(value).compareTo(quantity('16Gi')) <= 0\"", value: "17Gi", want: `must satisfy quantity(value).compareTo(quantity('16Gi')) <= 0`},
		{name: "an expression with a message", constraint: "expression: \"value.startsWith('x')\", message: must begin with an x", value: "y", want: `Invalid value: "y": must begin with an x`},
		{name: "an expression that cannot be evaluated rejects", constraint: "expression: \"quantity(value).isLessThan(quantity('1'))\"", value: "much", want: "which cannot be evaluated for this value"},
		{name: "other parameters in an expression", constraint: "expression: \"params['Q'] == value\"", value: "x", others: map[string]string{"Q": "x"}},
		{name: "a parameter that is not there in an expression", constraint: "expression: \"params['Q'] == value\"", value: "x", want: "no such key: Q"},
		{name: "a parameter that may not be there in an expression", constraint: "expression: \"params[?'Q'].orValue('x') == value\"", value: "x"},
		{name: "an expression that would take too long", constraint: "expression: \"value.split('').all(a, value.split('').all(b, value.split('').all(c, a != '!' || b != c)))\"", value: long[:1000], want: "takes too long"},

		{name: "everything that is said must hold", constraint: "allowed: ['5', '6'], minimum: 6", value: "5", want: "must be at least 6"},
		{name: "all that is wrong is told", constraint: "allowed: ['5', '6'], minimum: 6", value: "4", want: `must be one of "5", "6", parameters[P]: Invalid value: "4": must be at least 6`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := compile(t, "a", "parameters: [{name: P, "+tc.constraint+"}]")
			values := map[string]string{"P": tc.value}
			for name, value := range tc.others {
				values[name] = value
			}
			err := a.Parameters(values, none).ToAggregate()
			if tc.want == "" {
				if err != nil {
					t.Errorf("rejected: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
	t.Run("a parameter without a value is not evaluated", func(t *testing.T) {
		a := compile(t, "a", "parameters: [{name: P, allowed: [a]}, {name: Q, expression: 'false'}]")
		if causes := a.Parameters(map[string]string{"R": "x"}, none); len(causes) > 0 {
			t.Error(causes)
		}
	})
}

func TestNoValueOfASensitiveParameterIsTold(t *testing.T) {
	const secret = "hunter2"
	a := compile(t, "a", `
overrides: [spec.x]
parameters:
- {name: LISTED, allowed: [open-sesame]}
- {name: MATCHED, pattern: "[0-9]+"}
- {name: BOUND, maximum: 3}
- {name: EXPRESSED, expression: "quantity(value).isGreaterThan(quantity('1'))"}
- {name: PUBLIC, expression: "params['EXPRESSED'].matches(params['PATTERN'])"}
`)
	values := map[string]string{"LISTED": secret, "MATCHED": secret, "BOUND": secret, "EXPRESSED": secret, "PUBLIC": "shown", "PATTERN": "(" + secret}
	sensitive := func(name string) bool { return name != "PUBLIC" }
	for name, isSensitive := range map[string]func(string) bool{"sensitive ones are named": sensitive, "all are assumed sensitive": nil} {
		t.Run(name, func(t *testing.T) {
			causes := a.Parameters(values, isSensitive)
			if len(causes) != 5 {
				t.Errorf("got %d causes, want one for each parameter: %v", len(causes), causes)
			}
			decision := approval.Evaluate([]*approval.Approval{a}, approval.Question{Template: approval.Template{Namespace: "golden", Name: "fedora"}, Values: values, Sensitive: isSensitive})
			text := causes.ToAggregate().Error() + decision.Causes().ToAggregate().Error()
			for _, objection := range decision.Objections {
				text += objection.String()
			}
			for _, never := range []string{secret, "open-sesame"} {
				if strings.Contains(text, never) {
					t.Errorf("%q is told in %s", never, text)
				}
			}
		})
	}
}
