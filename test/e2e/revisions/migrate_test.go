package revisions_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/harness"
)

// Every format, referred to by spec and by status: KubeVirt cannot start the VirtualMachine before, and starts it with its pinned size after.
func TestStoppedVirtualMachinesStartWithTheirPinnedSize(t *testing.T) {
	namespace := harness.Namespace(t, plane, "stopped")
	w := newWriter(t, nil)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	var all []*pinned
	for name, inSpec := range map[string]bool{"spec": true, "status": false} {
		for _, format := range []string{formatSpec, formatAlpha1, formatAlpha2} {
			all = append(all, newPinned(t, namespace, strings.ToLower(format)+"-"+name, format, inSpec))
		}
	}
	mode(t, v1alpha1.RevisionMigrationReport, namespace)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if read(t, namespace, p.before.Name).UID != p.before.UID {
			t.Errorf("a report replaced %s", p.before.Name)
		}
	}
	mode(t, v1alpha1.RevisionMigrationDryRun, namespace)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	if s := status(t); *s.Migrated != int32(len(all)) {
		t.Errorf("a dry run reports %d of %d old copies as migrated, findings %v", *s.Migrated, len(all), s.Findings)
	}
	var versions []string
	for _, p := range all {
		vm, err := objects.Resource(virtualMachines).Namespace(namespace).Get(background(t), p.name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, strings.Join([]string{string(vm.GetUID()), specOf(t, vm)}, " "))
	}
	mode(t, v1alpha1.RevisionMigrationApply, namespace)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	for i, p := range all {
		p.migrated(t)
		vm, err := objects.Resource(virtualMachines).Namespace(namespace).Get(background(t), p.name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join([]string{string(vm.GetUID()), specOf(t, vm)}, " "); got != versions[i] {
			t.Errorf("VirtualMachine %s has changed: %s, was %s", p.name, got, versions[i])
		}
		if got := statusRevision(vm); got != p.before.Name {
			t.Errorf("the status of %s refers to %s", p.name, got)
		}
		p.starts(t, 6)
	}
	if left := backups(t, namespace); len(left) != len(all) {
		t.Errorf("backups %v, want one for each of %d", left, len(all))
	}
}

func specOf(t *testing.T, vm *unstructured.Unstructured) string {
	t.Helper()
	raw, err := (&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Spec", "spec": vm.Object["spec"]}}).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
