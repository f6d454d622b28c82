package approval

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// Declarations are the parameters of a template; a template.Compiled has them.
type Declarations interface {
	// Parameters are the declared parameters, in their order.
	Parameters() []v1beta1.Parameter
	// Naming reports whether the name of the VirtualMachine sets a parameter that has no
	// part in the source of a disk.
	Naming(name string) bool
	// NamePattern is the name of the VirtualMachine as the template writes it, with a
	// placeholder ${NAME} for each parameter in it.
	NamePattern() string
	// Carries reports whether the template makes this name with the given values.
	Carries(name string, given map[string]string) bool
	// Generates reports whether the template may generate a value of a parameter.
	Generates(name, value string) bool
}

// ReasonClosedParameter is the reason of an objection to the value of a parameter
// that the approval does not list.
const ReasonClosedParameter = "closedParameter"

// ClosedParameters are the parameters of a template that the approval closes, in
// their order: it does not list them, and the name of the VirtualMachine does not
// set them.
func (a *Approval) ClosedParameters(d Declarations) []v1beta1.Parameter {
	return slices.DeleteFunc(d.Parameters(), func(p v1beta1.Parameter) bool { return a.lists(p.Name) || d.Naming(p.Name) })
}

func (a *Approval) lists(parameter string) bool {
	return a.constraintOf(parameter) != nil
}

// HasNoValue reports whether a template requires a parameter for which it has neither a default nor a generator. No VirtualMachine of that template
// satisfies an approval that closes the parameter.
func HasNoValue(p v1beta1.Parameter) bool { return p.Required && p.Value == "" && !generated(p) }

// generated reports whether the value of a parameter is generated unless it is given. A
// generator beside a default has no effect.
func generated(p v1beta1.Parameter) bool { return p.Value == "" && p.Generate != "" }

// ClosedValues are the values that a template has for the parameters that the
// approval closes, without those that are generated.
func (a *Approval) ClosedValues(d Declarations) map[string]string {
	values := map[string]string{}
	for _, p := range a.ClosedParameters(d) {
		if !generated(p) && !HasNoValue(p) {
			values[p.Name] = p.Value
		}
	}
	return values
}

// closedCauses returns what is wrong with the values of closed parameters, at paths
// parameters[NAME].
func (a *Approval) closedCauses(q Question, values map[string]string) field.ErrorList {
	if q.Declared == nil {
		return nil
	}
	var causes field.ErrorList
	carried := q.Name == "" || q.Declared.Carries(q.Name, q.Given)
	for _, p := range q.Declared.Parameters() {
		naming := q.Declared.Naming(p.Name)
		if a.lists(p.Name) || naming && carried {
			continue
		}
		c := closedParameter{Parameter: p, naming: naming, pattern: q.Declared.NamePattern(), secret: p.Sensitive || q.Sensitive == nil || q.Sensitive(p.Name)}
		c.given, c.isGiven = q.Given[p.Name]
		c.value, c.hasValue = values[p.Name]
		c.unshown = q.Instance != nil && a.generatedDenied
		if cause := c.check(q.Declared); cause != nil {
			causes = append(causes, cause)
		}
	}
	return causes
}

// closedParameter is a parameter that an approval does not list, and the values that
// it has in a VirtualMachine.
type closedParameter struct {
	v1beta1.Parameter

	// given is the user-specified value, value the bound one.
	given, value      string
	isGiven, hasValue bool
	secret            bool
	// naming is whether the name of the VirtualMachine usually sets the parameter, but does not in this one.
	naming  bool
	pattern string
	// unshown is whether a VirtualMachine with a complete spec must not show a value that the template generates.
	unshown bool
}

// howToOpen ends the objections to what another approval could allow.
func (c *closedParameter) howToOpen() string {
	switch {
	case c.naming:
		return "because the approval does not list this parameter and the VirtualMachine is not named " + c.pattern + "; name it so, or ask a cluster admin to list the parameter"
	case strings.Contains(c.pattern, "${"+c.Name+"}"):
		return "because the approval does not list this parameter and it has a part in the source of a disk; leave it and the name of the VirtualMachine out, or ask a cluster admin to list it"
	default:
		return "because the approval does not list this parameter; leave it out, or ask a cluster admin to list it"
	}
}

func (c *closedParameter) check(d Declarations) *field.Error {
	switch {
	case HasNoValue(c.Parameter) && c.naming:
		if c.isGiven && c.given != "" {
			return c.reject(c.given, "must be left to the name of the VirtualMachine, %s", c.howToOpen())
		}
	case HasNoValue(c.Parameter):
		return field.Required(c.path(), "the template has no value for it and the approval does not list it, so no VirtualMachine of this template is approved; "+
			"ask a cluster admin to list the parameter, with the values that are allowed or with anyValue: true")
	case generated(c.Parameter):
		switch {
		case c.isGiven && c.given != "":
			return c.reject(c.given, "must be left to the template, which generates it, %s", c.howToOpen())
		case c.hasValue && c.unshown:
			return field.Forbidden(c.path(), "must be left to the template, which generates it: the approval denies generated values that the user sends; leave out spec, and give the other parameters in annotations")
		case c.hasValue && !d.Generates(c.Name, c.value):
			return c.reject(c.value, "must be left to the template, which generates it, %s", c.howToOpen())
		}
	case c.isGiven && c.given != c.Value:
		return c.reject(c.given, "must be %s, %s", c.describe(), c.howToOpen())
	case c.hasValue && c.value != c.Value:
		return c.reject(c.value, "must be %s, %s", c.describe(), c.howToOpen())
	}
	return nil
}

// describe is the value that the template has.
func (c *closedParameter) describe() string {
	switch {
	case c.Value == "":
		return "empty as in the template"
	case c.secret:
		return "the default of the template"
	default:
		return fmt.Sprintf("%q, the default of the template", shown(c.Value))
	}
}

func (c *closedParameter) path() *field.Path { return field.NewPath("parameters").Key(c.Name) }

func (c *closedParameter) reject(value, format string, arguments ...any) *field.Error {
	var bad any = omitted
	if !c.secret {
		bad = shown(value)
	}
	return field.Invalid(c.path(), bad, fmt.Sprintf(format, arguments...))
}
