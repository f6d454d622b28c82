// Package deny returns admission responses that deny or reject requests, so that all webhooks respond alike to
// objects that cannot be decoded or evaluated.
package deny

import (
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

var vmKind = schema.GroupKind{Group: "kubevirt.io", Kind: "VirtualMachine"}

// With denies a request with a status.
func With(status metav1.Status) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// Invalid rejects a VirtualMachine with errors of its fields.
func Invalid(name string, causes field.ErrorList) admission.Response {
	return With(apierrors.NewInvalid(vmKind, name, causes).Status())
}

// Malformed rejects an object that cannot be decoded.
func Malformed(err error) admission.Response {
	return With(apierrors.NewBadRequest(err.Error()).Status())
}

// Unavailable denies a request for a temporary reason that is not in the request: a retry may succeed.
func Unavailable(what string) admission.Response {
	return With(apierrors.NewServiceUnavailable(what + "; try again in a moment").Status())
}

// ReadVM decodes the VirtualMachine of a request. If it cannot, it returns the response that rejects the request.
func ReadVM(name string, raw []byte) (machine.Object, *admission.Response) {
	decoded, err := machine.Decode(raw)
	if err != nil {
		response := Malformed(err)
		return machine.Object{}, &response
	}
	vm, errs := machine.Read(decoded)
	if len(errs) > 0 {
		response := Invalid(name, errs)
		return machine.Object{}, &response
	}
	return vm, nil
}
