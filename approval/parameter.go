package approval

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// MaxMatchedBytes is the largest value that is matched against a pattern. A longer
// one does not match.
const MaxMatchedBytes = 16 << 10

// constraint is the compiled rule of an approval for one parameter. One that allows any value has nothing to evaluate.
type constraint struct {
	v1alpha1.ParameterConstraint

	pattern    *regexp.Regexp
	expression *expression
}

// Parameters returns what is wrong with the values of parameters, at paths parameters[NAME]. A parameter without a value is not evaluated. sensitive
// reports which parameters are sensitive; when nil, all are. Causes contain neither their values nor the lists of their allowed values.
func (a *Approval) Parameters(values map[string]string, sensitive func(name string) bool) field.ErrorList {
	if sensitive == nil {
		sensitive = func(string) bool { return true }
	}
	var causes field.ErrorList
	for i := range a.constraints {
		c := &a.constraints[i]
		if value, given := values[c.Name]; given {
			check := valueCheck{constraint: c, value: value, values: values, sensitive: sensitive}
			check.run()
			causes = append(causes, check.causes...)
		}
	}
	return causes
}

// ConstrainedParameters returns the names of the parameters that the approval lists, in its order.
func (a *Approval) ConstrainedParameters() []string {
	var names []string
	for i := range a.constraints {
		names = append(names, a.constraints[i].Name)
	}
	return names
}

// valueCheck evaluates one value with one constraint.
type valueCheck struct {
	*constraint
	value     string
	values    map[string]string
	sensitive func(name string) bool
	causes    field.ErrorList
}

func (c *valueCheck) run() {
	if len(c.Allowed) > 0 && !slices.Contains(c.Allowed, c.value) {
		c.reject("must be %s", c.describeAllowed())
	}
	if c.pattern != nil {
		switch {
		case len(c.value) > MaxMatchedBytes:
			c.reject("must be at most %d bytes long to be matched against a pattern", MaxMatchedBytes)
		case !c.pattern.MatchString(c.value):
			c.reject("must match %s as a whole", c.Pattern)
		}
	}
	c.bounds()
	if c.expression != nil {
		c.evaluate()
	}
}

func (c *valueCheck) bounds() {
	if c.Minimum == nil && c.Maximum == nil {
		return
	}
	switch {
	case !isInteger(c.value):
		c.reject("must be an integer")
	case c.Minimum != nil && compareInteger(c.value, *c.Minimum) < 0:
		c.reject("must be at least %d", *c.Minimum)
	case c.Maximum != nil && compareInteger(c.value, *c.Maximum) > 0:
		c.reject("must be at most %d", *c.Maximum)
	}
}

func (c *valueCheck) evaluate() {
	holds, err := c.expression.holds(c.value, c.values)
	switch {
	case errors.Is(err, errTooExpensive):
		c.reject("%s; %v", c.describeExpression(), err)
	case err != nil && c.secretive():
		c.reject("%s, which cannot be evaluated for this value", c.describeExpression())
	case err != nil:
		c.reject("%s, which cannot be evaluated for this value: %s", c.describeExpression(), shown(err.Error()))
	case !holds:
		c.reject("%s", c.describeExpression())
	}
}

// secretive reports whether an error of the expression, which has access to all values, could disclose a sensitive one.
func (c *valueCheck) secretive() bool {
	for name := range c.values {
		if c.sensitive(name) {
			return true
		}
	}
	return false
}

func (c *constraint) describeExpression() string {
	if c.Message != "" {
		return c.Message
	}
	return "must satisfy " + c.expression.text
}

func (c *valueCheck) describeAllowed() string {
	if c.sensitive(c.Name) {
		return "one of the values that the approval lists"
	}
	var values []string
	for _, value := range c.Allowed {
		values = append(values, fmt.Sprintf("%q", shown(value)))
	}
	if len(values) == 1 {
		return values[0]
	}
	return "one of " + shorten(values)
}

func (c *valueCheck) reject(format string, arguments ...any) {
	var value any = omitted
	if !c.sensitive(c.Name) {
		value = shown(c.value)
	}
	c.causes = append(c.causes, field.Invalid(field.NewPath("parameters").Key(c.Name), value, fmt.Sprintf(format, arguments...)))
}
