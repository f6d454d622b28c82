package templates

import (
	"context"
	"encoding/json"
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/disks"
)

// Permissions decides whether a user may do something.
type Permissions interface {
	May(ctx context.Context, requester authenticationv1.UserInfo, action permission.Action) (bool, error)
}

// Lending serves the admission requests of the webhook by which new templates lend their disks. It adds label
// stencil.kubevirt.io/disk-access=Lend to a template that names disks of a namespace, if its writer may copy them and the template has no
// label disk-access. The admission policy disk-lending decides again whether the writer may.
//
// Only creations are changed: an update that leaves the label out may do so on purpose.
type Lending struct{ permissions Permissions }

// NewLending returns a Lending.
func NewLending(permissions Permissions) *Lending { return &Lending{permissions: permissions} }

// Handle implements admission.Handler.
func (l *Lending) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.SubResource != "" || request.Operation != admissionv1.Create {
		return admission.Allowed("")
	}
	var object v1beta1.VirtualMachineTemplate
	if json.Unmarshal(request.Object.Raw, &object) != nil {
		// The API server validates it later, with a better message.
		return admission.Allowed("")
	}
	if _, decided := object.Labels[contract.LabelDiskAccess]; decided || !namesDisks(&object) {
		return admission.Allowed("")
	}
	may, err := l.mayCopy(ctx, request.UserInfo, request.Namespace)
	if err != nil {
		return admission.Allowed("").WithWarnings(fmt.Sprintf(
			"the template lends no disks, because Stencil could not find out whether you may copy them (%v): label it %s=%s to lend them", err, contract.LabelDiskAccess, contract.DiskAccessLend))
	}
	if !may {
		return admission.Allowed("")
	}
	operation := jsonpatch.NewOperation("add", "/metadata/labels/stencil.kubevirt.io~1disk-access", contract.DiskAccessLend)
	if object.Labels == nil {
		operation = jsonpatch.NewOperation("add", "/metadata/labels", map[string]string{contract.LabelDiskAccess: contract.DiskAccessLend})
	}
	return admission.Patched("", operation).WithWarnings(fmt.Sprintf(
		"label %s=%s was added: users who may use the template get copies of the disks in namespace %s that it names; set it to %s to lend none",
		contract.LabelDiskAccess, contract.DiskAccessLend, request.Namespace, contract.DiskAccessNone))
}

// namesDisks reports whether the VirtualMachine copies a disk from a namespace that it names. A template that cannot be decoded is invalid,
// which the validating webhook reports.
func namesDisks(object *v1beta1.VirtualMachineTemplate) bool {
	var vm struct {
		Spec map[string]any `json:"spec"`
	}
	return object.Spec.VirtualMachine != nil && json.Unmarshal(object.Spec.VirtualMachine.Raw, &vm) == nil && disks.Foreign(vm.Spec, "")
}

// mayCopy reports whether the user may copy any claim or VolumeSnapshot of the namespace, as the policy disk-lending does.
func (l *Lending) mayCopy(ctx context.Context, user authenticationv1.UserInfo, namespace string) (bool, error) {
	if may, err := l.permissions.May(ctx, user, permission.CopyDisks(namespace)); may || err != nil {
		return may, err
	}
	for _, resource := range []string{"pods", "persistentvolumeclaims"} {
		if may, err := l.permissions.May(ctx, user, permission.Action{Verb: permission.Create, Version: "v1", Resource: resource, Namespace: namespace}); !may || err != nil {
			return false, err
		}
	}
	return true, nil
}
