package powers

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"

	contract "github.com/vmstencil/stencil/api/template"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/disks"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Permissions checks permissions at the moment of the call; a permission.Checker that is Fresh implements it.
type Permissions interface {
	Allowed(ctx context.Context, requester authenticationv1.UserInfo, verb permission.Verb, namespace, name string) (bool, error)
}

// Lend returns why the template of a record lends no disks to a VirtualMachine; empty if the user of its grant may use the template now. revoked reports that this
// user may not, which can change without an event.
func Lend(ctx context.Context, permissions Permissions, vm machine.Object, record machine.Record, namespace string) (denial string, revoked bool, err error) {
	grant, is := ParseGrant(machine.StringAt(vm.Annotations, contract.AnnotationRenderedFor))
	if !is || grant.Template != record.UID || grant.Sources != disks.Borrowed(vm.Spec, namespace) {
		return fmt.Sprintf("it was not created, or last given other disks, by a request of a user who may use VirtualMachineTemplate %s/%s: a copy of a VirtualMachine borrows no disks", record.Namespace, record.Name), false, nil
	}
	may, err := permissions.Allowed(ctx, grant.User, permission.Use, record.Namespace, record.Name)
	switch {
	case err != nil:
		return "", false, err
	case !may:
		return fmt.Sprintf("the user for whom the VirtualMachine was created or changed may not use VirtualMachineTemplate %s/%s", record.Namespace, record.Name), true, nil
	}
	return "", false, nil
}
