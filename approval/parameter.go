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
			j := judgement{constraint: c, value: value, values: values, sensitive: sensitive}
			j.run()
			causes = append(causes, j.causes...)
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

// judgement evaluates one value with one constraint.
type judgement struct {
	*constraint
	value     string
	values    map[string]string
	sensitive func(name string) bool
	causes    field.ErrorList
}

func (j *judgement) run() {
	if len(j.Allowed) > 0 && !slices.Contains(j.Allowed, j.value) {
		j.refuse("must be %s", j.describeAllowed())
	}
	if j.pattern != nil {
		switch {
		case len(j.value) > MaxMatchedBytes:
			j.refuse("must be at most %d bytes long to be matched against a pattern", MaxMatchedBytes)
		case !j.pattern.MatchString(j.value):
			j.refuse("must match %s as a whole", j.Pattern)
		}
	}
	j.bounds()
	if j.expression != nil {
		j.evaluate()
	}
}

func (j *judgement) bounds() {
	if j.Minimum == nil && j.Maximum == nil {
		return
	}
	switch {
	case !isInteger(j.value):
		j.refuse("must be an integer")
	case j.Minimum != nil && compareInteger(j.value, *j.Minimum) < 0:
		j.refuse("must be at least %d", *j.Minimum)
	case j.Maximum != nil && compareInteger(j.value, *j.Maximum) > 0:
		j.refuse("must be at most %d", *j.Maximum)
	}
}

func (j *judgement) evaluate() {
	holds, err := j.expression.holds(j.value, j.values)
	switch {
	case errors.Is(err, errTooExpensive):
		j.refuse("%s; %v", j.describeExpression(), err)
	case err != nil && j.secretive():
		j.refuse("%s, which cannot be evaluated for this value", j.describeExpression())
	case err != nil:
		j.refuse("%s, which cannot be evaluated for this value: %s", j.describeExpression(), shown(err.Error()))
	case !holds:
		j.refuse("%s", j.describeExpression())
	}
}

// secretive reports whether an error of the expression, which has access to all values, could disclose a sensitive one.
func (j *judgement) secretive() bool {
	for name := range j.values {
		if j.sensitive(name) {
			return true
		}
	}
	return false
}

func (j *judgement) describeExpression() string {
	if j.Message != "" {
		return j.Message
	}
	return "must satisfy " + j.expression.text
}

func (j *judgement) describeAllowed() string {
	if j.sensitive(j.Name) {
		return "one of the values that the approval lists"
	}
	var values []string
	for _, value := range j.Allowed {
		values = append(values, fmt.Sprintf("%q", shown(value)))
	}
	if len(values) == 1 {
		return values[0]
	}
	return "one of " + shorten(values)
}

func (j *judgement) refuse(format string, arguments ...any) {
	var value any = omitted
	if !j.sensitive(j.Name) {
		value = shown(j.value)
	}
	j.causes = append(j.causes, field.Invalid(field.NewPath("parameters").Key(j.Name), value, fmt.Sprintf(format, arguments...)))
}
