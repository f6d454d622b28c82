package revisions

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/revision"
)

func TestGuard(t *testing.T) {
	owner := func(kind, name, uid string) metav1.OwnerReference {
		return metav1.OwnerReference{Kind: kind, Name: name, UID: types.UID(uid)}
	}
	by := func(kind revision.HolderKind, name string) []revision.Reference {
		return []revision.Reference{{Holder: revision.Holder{Kind: kind, Name: name}}}
	}
	web := []metav1.OwnerReference{owner("VirtualMachine", "web", "u1")}
	for _, tc := range []struct {
		name  string
		entry entry
		state func(*state)
		want  string
	}{
		{name: "a stopped VM", entry: entry{owners: web}},
		{name: "no owner", entry: entry{}},
		{name: "a finalizer", entry: entry{owners: web, finalizers: true}, want: "it has finalizers"},
		{name: "a deletion", entry: entry{owners: web, deleting: true}, want: "it is being deleted"},
		{name: "two owners", entry: entry{owners: append(web, owner("VirtualMachine", "db", "u2"))}, want: "2 objects own it"},
		{name: "another kind of owner", entry: entry{owners: []metav1.OwnerReference{owner("VirtualMachinePool", "p", "u")}}, want: "a VirtualMachinePool owns it"},
		{name: "a deleted owner", entry: entry{owners: []metav1.OwnerReference{owner("VirtualMachine", "gone", "u9")}}, want: "its owner VirtualMachine gone is gone: the garbage collector deletes it"},
		{name: "an owner of the same name that is another object", entry: entry{owners: []metav1.OwnerReference{owner("VirtualMachine", "web", "u0")}}, want: "its owner VirtualMachine web is gone: the garbage collector deletes it"},
		{name: "a deleted snapshot", entry: entry{owners: []metav1.OwnerReference{owner("VirtualMachineSnapshot", "s", "u9")}}, want: "its owner VirtualMachineSnapshot s is gone: the garbage collector deletes it"},
		{name: "a VM that is starting", entry: entry{owners: []metav1.OwnerReference{owner("VirtualMachine", "db", "u2")}}, want: "VirtualMachine db is Starting"},
		{name: "a VM that is starting and refers to it only", entry: entry{owners: web, references: by(revision.VirtualMachine, "db")}, want: "VirtualMachine db is Starting"},
		{name: "a snapshot of that name refers to it", entry: entry{owners: web, references: by(revision.Snapshot, "db")}},
		{name: "a VM that was told to start", entry: entry{references: by(revision.VirtualMachine, "soon")}, want: "VirtualMachine soon is being started or stopped"},
		{name: "a snapshot that is being restored", entry: entry{references: by(revision.Snapshot, "nightly")}, want: "VirtualMachineRestore back is in progress"},
		{name: "an upgrade", entry: entry{owners: web}, state: func(s *state) { s.upgrading = "KubeVirt is being upgraded" }, want: "KubeVirt is being upgraded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newState(labels.Everything())
			for name, fields := range map[string]map[string]any{
				"web": {"printableStatus": "Running"}, "db": {"printableStatus": "Starting"},
				"soon": {"printableStatus": "Stopped", "stateChangeRequests": []any{map[string]any{"action": "Start"}}},
			} {
				uid := map[string]string{"web": "u1", "db": "u2", "soon": "u3"}[name]
				s.addVirtualMachine(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "team-a", "name": name, "uid": uid}, "status": fields}})
			}
			s.busySnapshots[types.NamespacedName{Namespace: "team-a", Name: "nightly"}] = "VirtualMachineRestore back is in progress"
			if tc.state != nil {
				tc.state(&s)
			}
			tc.entry.Namespace = "team-a"
			if got := s.guard(&tc.entry); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNamesOfBackupsFit(t *testing.T) {
	long := make([]byte, maximumName)
	for i := range long {
		long[i] = 'a'
	}
	for _, name := range []string{"web", string(long)} {
		got := derivedName(name, backupInfix, digest([]byte("{}")))
		if len(got) > maximumName || got[len(got)-len("-bak-44136fa355"):] != "-bak-44136fa355" {
			t.Errorf("%d bytes: %s", len(got), got)
		}
	}
}

// In mode Apply there is a pass every ten minutes while thousands of backups are stored: only those that need it are read again.
func TestBackupsThatAreDue(t *testing.T) {
	oldest := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name   string
		backup storedBackup
		want   bool
	}{
		{"of a replaced copy", storedBackup{created: oldest, replaced: true}, false},
		{"whose copy is missing", storedBackup{created: oldest}, true},
		{"that has expired", storedBackup{created: oldest.Add(-time.Second), replaced: true}, true},
	} {
		if got := tc.backup.due(oldest); got != tc.want {
			t.Errorf("one %s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestConditions(t *testing.T) {
	inventoryOf := func(entries ...*entry) *result { return &result{inventory: &inventory{entries: entries}} }
	current := &entry{class: revision.Current, version: revision.Target, of: revision.Identity{UID: "u", Generation: 1}, bytes: 10}
	old := &entry{class: revision.OldObject, version: revision.V1alpha2}
	unread := inventoryOf(current)
	unread.unread = []finding{{"team-a", "VirtualMachine web", "spec.instancetype: Invalid"}}
	failing, skipping := inventoryOf(current), inventoryOf(current)
	failing.failures, skipping.skips = []finding{{}}, []finding{{}}
	apply := v1alpha1.RevisionMigrationApply
	for _, tc := range []struct {
		name           string
		done           *result
		mode           v1alpha1.RevisionMigrationMode
		want, complete string
	}{
		{"all are current", inventoryOf(current, current), apply, "True AllCurrent", "True Complete"},
		{"none at all", inventoryOf(), apply, "True AllCurrent", "True Complete"},
		{"an old one", inventoryOf(current, old), apply, "False OldVersionsStored", "True Complete"},
		{"one that cannot be decoded", inventoryOf(&entry{class: revision.Undecodable}), apply, "False OldVersionsStored", "True Complete"},
		{"references that cannot be read", unread, apply, "False NotReadable", "True Complete"},
		{"a failure", failing, apply, "True AllCurrent", "False Failed"},
		{"a skipped copy", skipping, apply, "True AllCurrent", "False Skipped"},
		{"without the permission", inventoryOf(old), v1alpha1.RevisionMigrationReport, "False OldVersionsStored", "False NotPermitted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			removed, carried := noOldVersions(tc.done), complete(apply, settings{mode: tc.mode}, tc.done)
			got := []string{string(removed.Status) + " " + removed.Reason, string(carried.Status) + " " + carried.Reason}
			if diff := cmp.Diff([]string{tc.want, tc.complete}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(&v1alpha1.RevisionDuplicates{Count: 2, Bytes: 20}, duplicates([]*entry{current, old, current, current})); diff != "" {
		t.Errorf("duplicates (-want +got):\n%s", diff)
	}
}
