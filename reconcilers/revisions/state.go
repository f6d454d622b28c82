package revisions

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/revision"
)

const (
	kindVM       = "VirtualMachine"
	kindSnapshot = "VirtualMachineSnapshot"
)

// state is what the guards read of a cluster.
type state struct {
	// vms and snapshots are the UIDs of the existing ones.
	vms, snapshots map[types.NamespacedName]types.UID
	// busyVMs and busySnapshots state why the copies of a VirtualMachine or a snapshot must not be replaced now.
	busyVMs, busySnapshots map[types.NamespacedName]string
	// upgrading states why no copy must be replaced now.
	upgrading string
	// selector selects owners; excluded are the existing ones that it does not select.
	selector labels.Selector
	excluded map[types.UID]bool
}

func newState(selector labels.Selector) state {
	return state{
		selector: selector, excluded: map[types.UID]bool{},
		vms: map[types.NamespacedName]types.UID{}, snapshots: map[types.NamespacedName]types.UID{},
		busyVMs: map[types.NamespacedName]string{}, busySnapshots: map[types.NamespacedName]string{},
	}
}

func (s *state) exclude(owner *unstructured.Unstructured) {
	if !s.selector.Matches(labels.Set(owner.GetLabels())) {
		s.excluded[owner.GetUID()] = true
	}
}

// selects reports whether the selector selects the owner of a copy. A copy without an owner is selected by an empty selector only.
func (s *state) selects(e *entry) bool {
	if len(e.owners) == 0 {
		return s.selector.Empty()
	}
	return !slices.ContainsFunc(e.owners, func(owner metav1.OwnerReference) bool { return s.excluded[owner.UID] })
}

// changing are the printable statuses of VirtualMachines whose copies virt-controller is about to read.
var changing = []string{"Starting", "Provisioning", "WaitingForVolumeBinding", "WaitingForReceiver", "Migrating", "Terminating"}

func (s *state) addVirtualMachine(vm *unstructured.Unstructured) {
	key := types.NamespacedName{Namespace: vm.GetNamespace(), Name: vm.GetName()}
	s.vms[key] = vm.GetUID()
	s.exclude(vm)
	printable, _, _ := unstructured.NestedString(vm.Object, "status", "printableStatus")
	requests, _, _ := unstructured.NestedSlice(vm.Object, "status", "stateChangeRequests")
	switch {
	case slices.Contains(changing, printable):
		s.busyVMs[key] = fmt.Sprintf("VirtualMachine %s is %s", vm.GetName(), printable)
	case len(requests) > 0:
		s.busyVMs[key] = fmt.Sprintf("VirtualMachine %s is being started or stopped", vm.GetName())
	}
}

// gatherState reads snapshots, restores, migrations and the state of KubeVirt.
func (c *cluster) gatherState(ctx context.Context, s *state) error {
	if err := c.each(ctx, snapshots, func(o *unstructured.Unstructured) error {
		key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
		s.snapshots[key] = o.GetUID()
		s.exclude(o)
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		if phase != "Succeeded" && phase != "Failed" {
			reason := "VirtualMachineSnapshot " + o.GetName() + " is in progress"
			source, _, _ := unstructured.NestedString(o.Object, "spec", "source", "name")
			s.busySnapshots[key], s.busyVMs[types.NamespacedName{Namespace: o.GetNamespace(), Name: source}] = reason, reason
		}
		return nil
	}); err != nil {
		return err
	}
	if err := c.each(ctx, restores, func(o *unstructured.Unstructured) error {
		if complete, _, _ := unstructured.NestedBool(o.Object, "status", "complete"); complete {
			return nil
		}
		reason := "VirtualMachineRestore " + o.GetName() + " is in progress"
		target, _, _ := unstructured.NestedString(o.Object, "spec", "target", "name")
		snapshot, _, _ := unstructured.NestedString(o.Object, "spec", "virtualMachineSnapshotName")
		s.busyVMs[types.NamespacedName{Namespace: o.GetNamespace(), Name: target}] = reason
		s.busySnapshots[types.NamespacedName{Namespace: o.GetNamespace(), Name: snapshot}] = reason
		return nil
	}); err != nil {
		return err
	}
	if err := c.each(ctx, migrations, func(o *unstructured.Unstructured) error {
		if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase != "Succeeded" && phase != "Failed" {
			name, _, _ := unstructured.NestedString(o.Object, "spec", "vmiName")
			s.busyVMs[types.NamespacedName{Namespace: o.GetNamespace(), Name: name}] = "VirtualMachineInstanceMigration " + o.GetName() + " is in progress"
		}
		return nil
	}); err != nil {
		return err
	}
	return c.each(ctx, kubeVirts, func(o *unstructured.Unstructured) error {
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		target, _, _ := unstructured.NestedString(o.Object, "status", "targetKubeVirtVersion")
		observed, _, _ := unstructured.NestedString(o.Object, "status", "observedKubeVirtVersion")
		if phase != "Deployed" || target != observed {
			s.upgrading = fmt.Sprintf("KubeVirt is being deployed or upgraded: phase %q, version %q of %q", phase, observed, target)
		}
		return nil
	})
}

// guard returns why a copy must not be written now; empty if it may.
func (s *state) guard(e *entry) string {
	switch {
	case s.upgrading != "":
		return s.upgrading
	case e.deleting:
		return "it is being deleted"
	case e.finalizers:
		return "it has finalizers"
	case len(e.owners) > 1:
		return fmt.Sprintf("%d objects own it", len(e.owners))
	}
	for _, owner := range e.owners {
		if reason := s.guardOwner(e.Namespace, owner); reason != "" {
			return reason
		}
	}
	for _, r := range e.references {
		key := types.NamespacedName{Namespace: e.Namespace, Name: r.Name}
		switch {
		case r.Kind == revision.VirtualMachine && s.busyVMs[key] != "":
			return s.busyVMs[key]
		case r.Kind == revision.Snapshot && s.busySnapshots[key] != "":
			return s.busySnapshots[key]
		}
	}
	return ""
}

func (s *state) guardOwner(namespace string, owner metav1.OwnerReference) string {
	key := types.NamespacedName{Namespace: namespace, Name: owner.Name}
	switch owner.Kind {
	case kindVM, kindSnapshot:
	default:
		return fmt.Sprintf("a %s owns it", owner.Kind)
	}
	if s.owner(namespace, owner) != owner.UID {
		return fmt.Sprintf("its owner %s %s is gone: the garbage collector deletes it", owner.Kind, owner.Name)
	}
	if owner.Kind == kindVM {
		return s.busyVMs[key]
	}
	return s.busySnapshots[key]
}

// owner returns the UID of the existing object of an owner reference; empty if there is none.
func (s *state) owner(namespace string, owner metav1.OwnerReference) types.UID {
	key := types.NamespacedName{Namespace: namespace, Name: owner.Name}
	switch owner.Kind {
	case kindVM:
		return s.vms[key]
	case kindSnapshot:
		return s.snapshots[key]
	default:
		return ""
	}
}

func compareFindings(a, b finding) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.object, b.object), cmp.Compare(a.message, b.message))
}
