package defaults

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/defaulting"
)

// causesOf converts the causes of a rejection to field errors.
func causesOf(problem *defaulting.Problem) field.ErrorList {
	errs := make(field.ErrorList, 0, len(problem.Causes))
	for _, cause := range problem.Causes {
		errs = append(errs, &field.Error{Type: field.ErrorTypeInvalid, Field: cause.Path, BadValue: cause.Value, Detail: cause.Detail})
	}
	if len(errs) == 0 {
		errs = append(errs, &field.Error{Type: field.ErrorTypeInvalid, Field: "spec.template.spec", BadValue: field.OmitValueType{}, Detail: problem.Detail})
	}
	return errs
}
