package defaults

import (
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/defaulting"
)

var machineKind = schema.GroupKind{Group: "kubevirt.io", Kind: "VirtualMachine"}

// causesOf are the causes of a refusal, as errors of fields.
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

func refuse(status metav1.Status) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

func refuseInvalid(name string, causes field.ErrorList) admission.Response {
	return refuse(apierrors.NewInvalid(machineKind, name, causes).Status())
}

func refuseMalformed(err error) admission.Response {
	return refuse(apierrors.NewBadRequest(err.Error()).Status())
}

func refuseUnavailable(what string) admission.Response {
	return refuse(apierrors.NewServiceUnavailable(what + "; try again in a moment").Status())
}
