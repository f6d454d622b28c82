package revisions_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/harness"
)

// A snapshot that KubeVirt restored into a new VirtualMachine while all copies were old: the copy that KubeVirt made for it is migrated as well.
func TestARestoredVirtualMachineHasItsOwnCopy(t *testing.T) {
	namespace := harness.Namespace(t, plane, "restored")
	w := newWriter(t, nil)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p := newPinned(t, namespace, "web", formatAlpha2, true)
	create(t, snapshots, namespace, `{"apiVersion":"snapshot.kubevirt.io/v1beta1","kind":"VirtualMachineSnapshot","metadata":{"name":"before"},"spec":{"source":{"apiGroup":"kubevirt.io","kind":"VirtualMachine","name":"web"}}}`)
	succeeds(t, snapshots, namespace, "before", `"phase":"Succeeded"`)
	create(t, restores, namespace, `{"apiVersion":"snapshot.kubevirt.io/v1beta1","kind":"VirtualMachineRestore","metadata":{"name":"new"},"spec":{"target":{"apiGroup":"kubevirt.io","kind":"VirtualMachine","name":"twin"},"virtualMachineSnapshotName":"before"}}`)
	succeeds(t, restores, namespace, "new", `"complete":true`)
	vm, err := objects.Resource(virtualMachines).Namespace(namespace).Get(background(t), "twin", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own, _, _ := unstructured.NestedString(vm.Object, "spec", "instancetype", "revisionName")
	if own == "" || own == p.before.Name {
		t.Fatalf("the restored VirtualMachine refers to %q", own)
	}
	before := read(t, namespace, own)
	if !strings.Contains(string(before.Data.Raw), "/v1alpha2") {
		t.Fatalf("KubeVirt has stored %s", before.Data.Raw)
	}
	mode(t, v1alpha1.RevisionMigrationApply, namespace)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p.migrated(t)
	twin := &pinned{namespace: namespace, name: "twin", size: p.size, before: before, vm: vm}
	twin.migrated(t)
	twin.starts(t, 6)
}

// A VirtualMachine that is deleted after its copy was deleted and before it is created again: its copy does not come back, and its backup goes with it.
func TestTheCopyOfADeletedVirtualMachineDoesNotComeBack(t *testing.T) {
	namespace := harness.Namespace(t, plane, "deleted")
	if err := newWriter(t, nil).pass(t); err != nil {
		t.Fatal(err)
	}
	p := newPinned(t, namespace, "web", formatAlpha2, true)
	mode(t, v1alpha1.RevisionMigrationApply, namespace)
	_ = newWriter(t, revisionWrites(2, true)).pass(t)
	if _, err := apps.ControllerRevisions(namespace).Get(background(t), p.before.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the process did not end after the deletion: %v", err)
	}
	if err := objects.Resource(virtualMachines).Namespace(namespace).Delete(background(t), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the VirtualMachine is gone", func() error {
		if _, err := objects.Resource(virtualMachines).Namespace(namespace).Get(background(t), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %w", err)
		}
		return nil
	})
	if err := newWriter(t, nil).pass(t); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the garbage collector deletes the backup", func() error {
		list, err := apps.ControllerRevisions(namespace).List(background(t), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, one := range list.Items {
			return harness.Complaint(one.Name + " is left")
		}
		return nil
	})
	if s := status(t); *s.Failed != 0 {
		t.Errorf("status %+v", s)
	}
}

// While its instance migrates to another node, the copy of a running VirtualMachine stays.
func TestACopyIsNotReplacedDuringALiveMigration(t *testing.T) {
	namespace := harness.Namespace(t, plane, "migrating")
	w := newWriter(t, nil)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p := newPinned(t, namespace, "web", formatBeta, true)
	p.starts(t, 6)
	p.runs(t)
	p.isRunning(t)
	p.ages(t)
	p.must(t, `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstanceMigration","metadata":{"name":"away"},"spec":{"vmiName":"web"}}`, "create", "-f", "-")
	mode(t, v1alpha1.RevisionMigrationApply, namespace)
	p.skips(t, w, "VirtualMachineInstanceMigration away is in progress", "VirtualMachine web is Migrating")
	p.must(t, "", "delete", "virtualmachineinstancemigration", "away")
	p.isRunning(t)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p.migrated(t)
}

// skips makes a pass, and requires that the copy is skipped for one of these reasons.
func (p *pinned) skips(t *testing.T, w *writer, reasons ...string) {
	t.Helper()
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	if read(t, p.namespace, p.before.Name).UID != p.before.UID {
		t.Error("the copy was replaced")
	}
	s := status(t)
	if !slices.ContainsFunc(s.Findings, func(f v1alpha1.RevisionFinding) bool {
		return f.Kind == v1alpha1.RevisionSkipped && f.Object == "ControllerRevision "+p.before.Name && slices.Contains(reasons, f.Message)
	}) {
		t.Errorf("findings %+v, want one of %q", s.Findings, reasons)
	}
}

// A restore that waits until its running VirtualMachine stops: neither the copy of the VirtualMachine nor that of the snapshot is replaced.
func TestACopyIsNotReplacedDuringARestore(t *testing.T) {
	namespace := harness.Namespace(t, plane, "restoring")
	w := newWriter(t, nil)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p := newPinned(t, namespace, "web", formatBeta, true)
	create(t, snapshots, namespace, `{"apiVersion":"snapshot.kubevirt.io/v1beta1","kind":"VirtualMachineSnapshot","metadata":{"name":"before"},"spec":{"source":{"apiGroup":"kubevirt.io","kind":"VirtualMachine","name":"web"}}}`)
	succeeds(t, snapshots, namespace, "before", `"phase":"Succeeded"`)
	p.starts(t, 6)
	p.runs(t)
	p.isRunning(t)
	p.ages(t)
	create(t, restores, namespace, `{"apiVersion":"snapshot.kubevirt.io/v1beta1","kind":"VirtualMachineRestore","metadata":{"name":"back"},
		"spec":{"target":{"apiGroup":"kubevirt.io","kind":"VirtualMachine","name":"web"},"virtualMachineSnapshotName":"before","targetReadinessPolicy":"WaitEventually"}}`)
	succeeds(t, restores, namespace, "back", `"complete":false`)
	mode(t, v1alpha1.RevisionMigrationApply, namespace)
	p.skips(t, w, "VirtualMachineRestore back is in progress")
	p.must(t, "", "delete", "virtualmachinerestore", "back")
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p.migrated(t)
}
