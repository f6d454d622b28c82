package render

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/template/v1beta1"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

var (
	vmResource       = schema.GroupResource{Group: "kubevirt.io", Resource: "virtualmachines"}
	templateResource = schema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: "virtualmachinetemplates"}
)

// unavailable denies a request for a temporary reason that is not in the request: a retry may succeed.
func unavailable(what string, err error) *admission.Response {
	message := what + "; try again in a moment"
	if err != nil {
		message = fmt.Sprintf("%s; try again in a moment: %v", what, err)
	}
	response := deny.With(apierrors.NewServiceUnavailable(message).Status())
	return &response
}

func denyUnseen(user string, ref machine.Reference, mayUse bool) *admission.Response {
	why := fmt.Sprintf("it does not exist or user %q may not use it; ask for verb \"use\" on virtualmachinetemplates %q in namespace %q", user, ref.Name, ref.Namespace)
	if mayUse {
		// It does not exist, which is no secret to this user: a VM from it would be created.
		why += together
	}
	return denyForbidden(ref, why)
}

func denyUse(user string, ref machine.Reference) *admission.Response {
	return denyForbidden(ref, fmt.Sprintf("user %q may not use it; ask for verb \"use\" on virtualmachinetemplates %q in namespace %q", user, ref.Name, ref.Namespace))
}

func denyForbidden(ref machine.Reference, why string) *admission.Response {
	response := deny.With(apierrors.NewForbidden(templateResource, ref.String(), errors.New(why)).Status())
	return &response
}

// together is for those who create a template and its first VM at once: Helm and kustomize sort VirtualMachine before VirtualMachineTemplate.
const together = `; if it is created together with this VM, order it first: annotation helm.sh/hook "pre-install,pre-upgrade" for Helm, argocd.argoproj.io/sync-wave "-1" for Argo CD, sortOptions {order: fifo} for kustomize`

func denyMissing(ref machine.Reference) *admission.Response {
	status := apierrors.NewNotFound(templateResource, ref.String()).Status()
	status.Message += together
	response := deny.With(status)
	return &response
}
