package lending

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	contract "github.com/vmstencil/stencil/api/template"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/disks"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// gather reads a VirtualMachine, what its template lends, and its disks. It reads the API server itself: a cache may be older than the event.
func (r *Reconciler) gather(ctx context.Context, name types.NamespacedName) (*state, error) {
	s := &state{}
	vm, err := r.vms.Resource(virtualMachines).Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return s, nil
	case err != nil:
		return nil, fmt.Errorf("reading VirtualMachine %s: %w", name, err)
	case vm.GetDeletionTimestamp() != nil:
		return s, nil
	}
	object, _ := machine.Read(vm.Object)
	if s.record, s.failure = recorded(object, name.Namespace), failure(vm.Object); s.record.Name == "" {
		return s, nil
	}
	lender := disks.Lender{Namespace: s.record.Namespace, Name: s.record.Name}
	// A template that was created anew under its name is another.
	if t := r.templates.Get(s.record.Namespace, s.record.Name); t != nil && t.UID == s.record.UID {
		lender.Labels = t.Labels()
		// The error is reported by the reconciler of readiness.
		lender.Compiled, _ = t.Compiled()
	}
	loans, err := disks.Loans(vm.Object, name.Namespace, lender)
	if err != nil {
		return nil, err
	}
	denial := ""
	if slices.ContainsFunc(loans, func(loan disks.Loan) bool { return loan.Denial == "" }) {
		if denial, s.revoked, err = r.granted(ctx, object, s.record, name.Namespace); err != nil {
			return nil, err
		}
	}
	s.vm = vm
	for _, loan := range loans {
		if loan.Denial == "" {
			loan.Denial = denial
		}
		d := disk{Loan: loan}
		var err1, err2, err3 error
		d.dataVolume, err1 = r.disks.DataVolume(ctx, name.Namespace, loan.Name)
		if d.missing() {
			d.claim, err2 = r.disks.Claim(ctx, name.Namespace, loan.Name)
			d.source, err3 = r.disks.Resolve(ctx, loan.Source)
		}
		for _, err := range []error{err1, err2, err3} {
			if err != nil {
				return nil, err
			}
		}
		s.disks = append(s.disks, d)
	}
	return s, nil
}

// granted returns why nothing is lent to a VirtualMachine; empty if the user of its grant may use the template now. revoked reports that this user may
// not, which can change without an event.
func (r *Reconciler) granted(ctx context.Context, vm machine.Object, record machine.Record, namespace string) (denial string, revoked bool, err error) {
	grant, is := disks.ParseGrant(machine.StringAt(vm.Annotations, contract.AnnotationRenderedFor))
	if !is || grant.Template != record.UID || grant.Sources != disks.Borrowed(vm.Spec, namespace) {
		return fmt.Sprintf("it was not created, or last given other disks, by a request of a user who may use VirtualMachineTemplate %s/%s: a copy of a VirtualMachine borrows no disks", record.Namespace, record.Name), false, nil
	}
	may, err := r.permissions.Allowed(ctx, grant.User, permission.Use, record.Namespace, record.Name)
	switch {
	case err != nil:
		return "", false, err
	case !may:
		return fmt.Sprintf("the user for whom the VirtualMachine was created or changed may not use VirtualMachineTemplate %s/%s", record.Namespace, record.Name), true, nil
	}
	return "", false, nil
}
