package guestdefaults

import (
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/defaulting"
)

// Rejection returns the errors of fields if the defaulter rejects the VirtualMachine because it can never be defined; nil for any
// other error.
func Rejection(err error) field.ErrorList {
	var problem *defaulting.Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusUnprocessableEntity {
		return nil
	}
	errs := make(field.ErrorList, 0, len(problem.Causes))
	for _, cause := range problem.Causes {
		errs = append(errs, &field.Error{Type: field.ErrorTypeInvalid, Field: cause.Path, BadValue: cause.Value, Detail: cause.Detail})
	}
	if len(errs) == 0 {
		errs = append(errs, &field.Error{Type: field.ErrorTypeInvalid, Field: "spec.template.spec", BadValue: field.OmitValueType{}, Detail: problem.Detail})
	}
	return errs
}
