// Package refuse makes the admission responses with which the webhooks refuse, so that
// what cannot be read, or judged, is answered alike by all of them.
package refuse

import (
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

var machineKind = schema.GroupKind{Group: "kubevirt.io", Kind: "VirtualMachine"}

// With refuses with a status.
func With(status metav1.Status) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// Invalid refuses a VirtualMachine for what is wrong with its fields.
func Invalid(name string, causes field.ErrorList) admission.Response {
	return With(apierrors.NewInvalid(machineKind, name, causes).Status())
}

// Malformed refuses what cannot be decoded.
func Malformed(err error) admission.Response {
	return With(apierrors.NewBadRequest(err.Error()).Status())
}

// Unavailable is for what is our fault, or nobody's: the same request may well pass a
// moment later.
func Unavailable(what string) admission.Response {
	return With(apierrors.NewServiceUnavailable(what + "; try again in a moment").Status())
}

// Machine reads the VirtualMachine of a request, or says why it is refused.
func Machine(name string, raw []byte) (machine.Machine, *admission.Response) {
	decoded, err := machine.Decode(raw)
	if err != nil {
		response := Malformed(err)
		return machine.Machine{}, &response
	}
	vm, errs := machine.Read(decoded)
	if len(errs) > 0 {
		response := Invalid(name, errs)
		return machine.Machine{}, &response
	}
	return vm, nil
}
