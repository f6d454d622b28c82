package revisions_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/harness"
)

// The writes of one replacement are the backup, the deletion and the creation; a rollback deletes, creates and deletes the backup.
const writes = 3

// revisionWrites counts writes of ControllerRevisions, and ends the process before or after one.
func revisionWrites(number int, after bool) func(bool, *http.Request) bool {
	count := 0
	return func(afterwards bool, request *http.Request) bool {
		if !strings.Contains(request.URL.Path, "/controllerrevisions") {
			return false
		}
		if !afterwards {
			count++
		}
		return count == number && afterwards == after
	}
}

// A manager that ends at any write leaves what the next one completes: the copy is replaced, with the same owner, and nothing is lost.
func TestCrashAtEachWrite(t *testing.T) {
	namespace := harness.Namespace(t, plane, "crash")
	if err := newWriter(t, nil).pass(t); err != nil {
		t.Fatal(err)
	}
	for number := 1; number <= writes; number++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, after it %v", number, after), func(t *testing.T) {
				p := newPinned(t, namespace, fmt.Sprintf("vm%d-%v", number, after), formatAlpha2, true)
				mode(t, v1alpha1.RevisionMigrationApply, namespace)
				crash := revisionWrites(number, after)
				crashed := false
				_ = newWriter(t, func(afterwards bool, request *http.Request) bool {
					ends := crash(afterwards, request)
					crashed = crashed || ends
					return ends
				}).pass(t)
				if !crashed {
					t.Fatal("the process did not end")
				}
				w := newWriter(t, nil)
				if err := w.pass(t); err != nil {
					t.Fatal(err)
				}
				p.migrated(t)
				if s := status(t); *s.Failed != 0 || len(dangling(s, namespace)) != 0 {
					t.Errorf("status %+v", s)
				}
				p.starts(t, 6)
			})
		}
	}
}

// The same for a rollback, after which the copy has the bytes and labels of before.
func TestCrashAtEachWriteOfARollback(t *testing.T) {
	namespace := harness.Namespace(t, plane, "rollback")
	if err := newWriter(t, nil).pass(t); err != nil {
		t.Fatal(err)
	}
	for number := 1; number <= writes; number++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, after it %v", number, after), func(t *testing.T) {
				p := newPinned(t, namespace, fmt.Sprintf("vm%d-%v", number, after), formatSpec, true)
				mode(t, v1alpha1.RevisionMigrationApply, namespace)
				if err := newWriter(t, nil).pass(t); err != nil {
					t.Fatal(err)
				}
				p.migrated(t)
				mode(t, v1alpha1.RevisionMigrationRollback, namespace)
				_ = newWriter(t, revisionWrites(number, after)).pass(t)
				if err := newWriter(t, nil).pass(t); err != nil {
					t.Fatal(err)
				}
				restored := read(t, namespace, p.before.Name)
				if !bytes.Equal(restored.Data.Raw, p.before.Data.Raw) || len(restored.Labels) != len(p.before.Labels) || len(restored.Annotations) != 0 || restored.OwnerReferences[0].UID != p.vm.GetUID() {
					t.Errorf("restored %+v, was %+v", restored, p.before)
				}
				if left := backups(t, namespace); len(left) != 0 {
					t.Errorf("backups are left: %v", left)
				}
				// It does not stay in the way of the next case.
				mode(t, v1alpha1.RevisionMigrationReport, namespace)
				if err := objects.Resource(virtualMachines).Namespace(namespace).Delete(background(t), p.name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// Two managers at once, as when one has lost its lease and does not know it yet.
func TestTwoManagers(t *testing.T) {
	namespace := harness.Namespace(t, plane, "two")
	if err := newWriter(t, nil).pass(t); err != nil {
		t.Fatal(err)
	}
	var all []*pinned
	for i := range 4 {
		all = append(all, newPinned(t, namespace, fmt.Sprintf("vm%d", i), formatAlpha2, true))
	}
	mode(t, v1alpha1.RevisionMigrationApply, namespace)
	var group sync.WaitGroup
	for range 2 {
		w := newWriter(t, nil)
		group.Go(func() { _, _ = w.Reconcile(context.WithoutCancel(t.Context()), reconcile.Request{}) })
	}
	group.Wait()
	if err := newWriter(t, nil).pass(t); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		p.migrated(t)
	}
	if left := backups(t, namespace); len(left) != len(all) {
		t.Errorf("backups %v, want one for each of %d", left, len(all))
	}
}

func backups(t *testing.T, namespace string) []string {
	t.Helper()
	list, err := apps.ControllerRevisions(namespace).List(background(t), metav1.ListOptions{LabelSelector: "stencil.kubevirt.io/revision-backup"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range list.Items {
		if one.DeletionTimestamp == nil {
			names = append(names, one.Name)
		}
	}
	return names
}

func dangling(s v1alpha1.RevisionMigrationStatus, namespace string) []v1alpha1.RevisionFinding {
	var found []v1alpha1.RevisionFinding
	for _, f := range s.Findings {
		if f.Kind == v1alpha1.RevisionDangling && f.Namespace == namespace {
			found = append(found, f)
		}
	}
	return found
}
