package templates

import (
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// Constraint describes the values that a parameter accepts, "" when it accepts any text.
func Constraint(p *v1beta1.Parameter) string {
	var clauses []string
	switch {
	case p.Sensitive && len(p.Enum) > 0:
		clauses = append(clauses, "one of a list")
	case len(p.Enum) > 0:
		clauses = append(clauses, "one of "+strings.Join(p.Enum, ", "))
	}
	switch p.Type {
	case v1beta1.ParameterTypeInt:
		clauses = append(clauses, integer(p))
	case v1beta1.ParameterTypeBool:
		clauses = append(clauses, "true or false")
	case v1beta1.ParameterTypeBase64:
		clauses = append(clauses, "base64")
	}
	if p.Multiline {
		clauses = append(clauses, "several lines")
	}
	if p.Pattern != "" {
		clauses = append(clauses, "matches "+p.Pattern)
	}
	return strings.Join(clauses, "; ")
}

func integer(p *v1beta1.Parameter) string {
	switch {
	case p.Minimum != nil && p.Maximum != nil:
		return fmt.Sprintf("integer from %d to %d", *p.Minimum, *p.Maximum)
	case p.Minimum != nil:
		return fmt.Sprintf("integer, at least %d", *p.Minimum)
	case p.Maximum != nil:
		return fmt.Sprintf("integer, at most %d", *p.Maximum)
	default:
		return "integer"
	}
}

// Default describes the value of a parameter when none is given. A sensitive default is not
// shown.
func Default(p *v1beta1.Parameter) string {
	switch {
	case p.Value != "" && p.Sensitive:
		return "(sensitive)"
	case p.Value != "":
		return p.Value
	case p.Generate != "" && p.Sensitive:
		return "(generated)"
	case p.Generate != "":
		return "(generated from " + p.From + ")"
	default:
		return ""
	}
}

// Missing returns the parameters that need a value and have none.
func (t *Template) Missing(values map[string]string) []v1beta1.Parameter {
	var missing []v1beta1.Parameter
	for _, p := range t.Compiled.Parameters() {
		if p.Required && p.Value == "" && p.Generate == "" && values[p.Name] == "" {
			missing = append(missing, p)
		}
	}
	return missing
}

// Objection returns what is wrong with the value of one parameter, or "".
func (t *Template) Objection(name, value string) string {
	_, err := t.Compiled.Bind(map[string]string{name: value})
	return causeAt(err, "parameters["+name+"]")
}
