package render

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/internal/delegation"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// delegable denies requests that stencil-apiserver never sends: with a spec, or for a user within delegation.Limits,
// who is exempt from approvals. Otherwise a stolen token of the server would permit more than the server does.
// Admission policy delegated-machines denies the same requests without this webhook. A dry run stores nothing, and is
// allowed for such users so that they can preview a VirtualMachine.
func (h *Handler) delegable(request admission.Request, vm machine.Object, user authenticationv1.UserInfo) *admission.Response {
	if vm.Spec != nil {
		response := deny.Invalid(vm.Name(), field.ErrorList{field.Forbidden(field.NewPath("spec"),
			"the API server for templates sends no spec, the template makes it: send a VirtualMachine with a spec as a user who may create VirtualMachines")})
		return &response
	}
	if ptr.Deref(request.DryRun, false) {
		return nil
	}
	if err := (delegation.Limits{Exemptions: h.exempt}).Check(user); err != nil {
		response := deny.With(apierrors.NewForbidden(vmResource, vm.Name(), err).Status())
		return &response
	}
	return nil
}
