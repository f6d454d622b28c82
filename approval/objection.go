package approval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	contract "github.com/vmstencil/stencil/api/template"
)

// Objection is one reason for which an approval is not satisfied.
type Objection struct {
	// Approval is the name of the approval, empty when the objection is not of one.
	Approval string
	// Field is the place: a path in the VirtualMachine, or parameters[NAME].
	Field string
	// Message describes what is wrong and what would be allowed. It never contains the value of a sensitive parameter.
	Message string
	// Reason is ReasonClosedParameter, ReasonObject, or empty for every other objection.
	Reason string
}

// String returns the objection in one line.
func (o Objection) String() string {
	return o.Field + ": " + o.detail()
}

// OfTemplate reports whether the objection is that the template is not approved, or not for the user.
func (o Objection) OfTemplate() bool { return o.Field == referenceField }

// Cause returns the objection as a cause of a denial. A message about a value begins with a reason, such as "Invalid value": it becomes the type of the
// cause, so that the text does not have a second one.
func (o Objection) Cause() *field.Error {
	detail := o.detail()
	for _, reason := range valueReasons {
		if rest, is := strings.CutPrefix(detail, reason.String()+": "); is {
			return &field.Error{Type: reason, Field: o.Field, BadValue: omitted, Detail: rest}
		}
	}
	return &field.Error{Type: field.ErrorTypeForbidden, Field: o.Field, BadValue: omitted, Detail: detail}
}

// valueReasons are the reasons with which the messages about values of parameters begin.
var valueReasons = []field.ErrorType{
	field.ErrorTypeInvalid, field.ErrorTypeRequired, field.ErrorTypeNotSupported, field.ErrorTypeForbidden,
	field.ErrorTypeNotFound, field.ErrorTypeDuplicate, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid,
}

func (o Objection) detail() string {
	if o.Approval == "" {
		return o.Message
	}
	return fmt.Sprintf("%s (approval %q)", o.Message, o.Approval)
}

const (
	// maxPathObjections is how many places one approval objects to one by one.
	maxPathObjections = 32
	// maxSuggested is how many overrides a message suggests.
	maxSuggested = 5
)

var referenceField = field.NewPath("metadata", "annotations").Key(contract.AnnotationTemplateRef).String()

// Objections returns why the approval is not satisfied, or none if it is. It checks neither whether the approval exempts the user nor whether it
// selects the namespace.
func (a *Approval) Objections(q Question) []Objection {
	objections, _ := a.evaluate(q)
	return objections
}

// evaluate returns the objections, and whether the approval serves the user and approves the template, so that a corrected request could satisfy it.
func (a *Approval) evaluate(q Question) (objections []Objection, candidate bool) {
	if approved, why := a.Approves(q.Template); !approved {
		objections = append(objections, a.object(referenceField, why))
	}
	if !q.Anyone && !a.Serves(q.User) {
		objections = append(objections, a.object(referenceField, fmt.Sprintf("it does not serve user %q", shown(q.User.Username))))
	}
	if q.Labelled && !a.labelsAccepted && len(objections) == 0 {
		objections = append(objections, a.object(referenceField, "it does not take labels of a VirtualMachine for a reference to a template"))
	}
	if len(objections) > 0 {
		return objections, false
	}
	if q.Instance != nil {
		instance := q.Instance(a)
		q.Values, q.Given, q.Touched = instance.Values, instance.Given, instance.Touched
		for _, o := range instance.Differences {
			objections = append(objections, a.object(o.Field, o.Message))
		}
	}
	values := q.Values
	if q.Match != nil {
		var differences []Objection
		values, differences = q.Match(a)
		for _, o := range differences {
			o.Approval = a.name
			objections = append(objections, o)
		}
	}
	for _, cause := range a.Parameters(values, q.Sensitive) {
		objections = append(objections, a.object(cause.Field, cause.ErrorBody()))
	}
	for _, cause := range a.closedCauses(q, values) {
		objection := a.object(cause.Field, cause.ErrorBody())
		objection.Reason = ReasonClosedParameter
		objections = append(objections, objection)
	}
	objections = append(objections, a.sourceObjections(q)...)
	objections = append(objections, a.objectObjections(q)...)
	return append(objections, a.evaluatePaths(q.Touched)...), true
}

func (a *Approval) evaluatePaths(touched []Path) []Objection {
	var objections []Objection
	more := 0
	for _, path := range touched {
		switch {
		case a.Overridable(path):
		case len(objections) < maxPathObjections:
			objections = append(objections, a.object(path.String(), a.describeOverrides(path)))
		default:
			more++
		}
	}
	if more > 0 {
		last := &objections[len(objections)-1]
		last.Message += fmt.Sprintf("; so it is with %d more fields", more)
	}
	return objections
}

// describeOverrides describes the places that may be set instead, the nearest first.
func (a *Approval) describeOverrides(path Path) string {
	const denied = "may not be written or changed beside the template"
	if len(a.overrides) == 0 {
		return denied + "; no field may"
	}
	nearest := slices.Clone(a.overrides)
	slices.SortStableFunc(nearest, func(x, y Override) int { return cmp.Compare(y.closeness(path), x.closeness(path)) })
	var texts []string
	for _, override := range nearest[:min(maxSuggested, len(nearest))] {
		texts = append(texts, override.String())
	}
	if more := len(nearest) - maxSuggested; more > 0 {
		texts[len(texts)-1] += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s; these may: %s", denied, shorten(texts))
}

func (a *Approval) object(at, message string) Objection {
	return Objection{Approval: a.name, Field: at, Message: message}
}
