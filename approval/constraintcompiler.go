package approval

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

const (
	// MaxPatternSize is the largest number of instructions that a pattern may
	// compile to, repetitions unrolled.
	MaxPatternSize = 10_000

	// MaxExpressionLength is how many bytes an expression may have.
	MaxExpressionLength = 2048
)

var parameterName = regexp.MustCompile(`^[a-zA-Z0-9_]+$`)

func compileConstraints(listed []v1alpha1.ParameterConstraint, path *field.Path) ([]constraint, field.ErrorList) {
	var causes field.ErrorList
	constraints := make([]constraint, len(listed))
	for i := range listed {
		at := path.Index(i)
		c := &constraints[i]
		listed[i].DeepCopyInto(&c.ParameterConstraint)
		switch {
		case !parameterName.MatchString(c.Name):
			causes = append(causes, field.Invalid(at.Child("name"), shown(c.Name), "must consist of letters, digits and underscores"))
		case slices.ContainsFunc(listed[:i], func(other v1alpha1.ParameterConstraint) bool { return other.Name == c.Name }):
			causes = append(causes, field.Duplicate(at.Child("name"), c.Name))
		}
		causes = append(causes, c.compile(at)...)
	}
	return constraints, causes
}

func (c *constraint) compile(at *field.Path) field.ErrorList {
	var causes field.ErrorList
	narrowed := len(c.Allowed) > 0 || c.Pattern != "" || c.Minimum != nil || c.Maximum != nil || c.Expression != ""
	switch {
	case c.AnyValue && narrowed:
		causes = append(causes, field.Forbidden(at.Child("anyValue"), "must not be combined with allowed, pattern, minimum, maximum and expression"))
	case !c.AnyValue && !narrowed:
		causes = append(causes, field.Required(at, "at least one of anyValue, allowed, pattern, minimum, maximum and expression must be given"))
	}
	if c.Minimum != nil && c.Maximum != nil && *c.Minimum > *c.Maximum {
		causes = append(causes, field.Invalid(at.Child("minimum"), *c.Minimum, fmt.Sprintf("must not be above maximum, which is %d", *c.Maximum)))
	}
	if c.Message != "" && c.Expression == "" {
		causes = append(causes, field.Forbidden(at.Child("message"), "it describes expression, which is not set"))
	}
	var err error
	if c.Pattern != "" {
		if c.pattern, err = compilePattern(c.Pattern); err != nil {
			causes = append(causes, field.Invalid(at.Child("pattern"), shown(c.Pattern), err.Error()))
		}
	}
	switch {
	case c.Expression == "":
	case len(c.Expression) > MaxExpressionLength:
		causes = append(causes, field.TooLong(at.Child("expression"), omitted, MaxExpressionLength))
	default:
		if c.expression, err = compileExpression(c.Expression); err != nil {
			causes = append(causes, field.Invalid(at.Child("expression"), shown(c.Expression), err.Error()))
		}
	}
	return causes
}

// compilePattern compiles a regular expression that matches values as a whole.
func compilePattern(text string) (*regexp.Regexp, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("must be a regular expression in RE2 syntax: %w", err)
	}
	if size := unrolled(parsed); size > MaxPatternSize {
		return nil, fmt.Errorf("must be smaller: with its repetitions unrolled it has more than %d instructions", MaxPatternSize)
	}
	pattern, err := regexp.Compile(`^(?:` + text + `)$`)
	if err != nil {
		return nil, fmt.Errorf("must be a regular expression in RE2 syntax: %w", err)
	}
	return pattern, nil
}

// unrolled estimates how many instructions an expression compiles to. It runs before the compilation because of repetitions such as (a{100}){100}.
func unrolled(r *syntax.Regexp) int {
	size := 1 + len(r.Rune)/2
	for _, sub := range r.Sub {
		size += unrolled(sub)
	}
	if r.Op == syntax.OpRepeat {
		size *= max(r.Min, r.Max, 1)
	}
	return min(size, MaxPatternSize+1)
}
