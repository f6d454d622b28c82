package lending

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/internal/powers"
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
		if denial, s.revoked, err = powers.Lend(ctx, r.permissions, object, s.record, name.Namespace); err != nil {
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
			d.source, d.outside, err3 = powers.Disk(ctx, r.disks, loan.Source, s.record.Namespace)
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
