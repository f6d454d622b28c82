package render

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/internal/delegation"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/refuse"
)

// delegable returns a refusal of what stencil-apiserver never sends: a spec, and a VirtualMachine for a user with more power than its own.
// With it a stolen token of the server could do more than the server. The policy delegated-machines denies the same without this webhook.
// A dry run stores nothing, so that such users can see what would be said of a VirtualMachine.
func (h *Handler) delegable(request admission.Request, vm machine.Machine, user authenticationv1.UserInfo) *admission.Response {
	if vm.Spec != nil {
		response := refuse.Invalid(vm.Name(), field.ErrorList{field.Forbidden(field.NewPath("spec"),
			"the API server for templates sends no spec, the template makes it: send a VirtualMachine with a spec as a user who may create VirtualMachines")})
		return &response
	}
	if ptr.Deref(request.DryRun, false) {
		return nil
	}
	if err := (delegation.Limits{Exemptions: h.exempt}).Check(user); err != nil {
		response := refuse.With(apierrors.NewForbidden(machineResource, vm.Name(), err).Status())
		return &response
	}
	return nil
}
