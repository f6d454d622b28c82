package sources

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	made := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte(text), &made.Object); err != nil {
		t.Fatal(err)
	}
	return made
}

func TestWhatIsKeptOfAnObject(t *testing.T) {
	disk := Key{Kind: Claim, Namespace: "golden", Name: "disk"}
	for _, tc := range []struct {
		name   string
		reduce func(*unstructured.Unstructured) Object
		text   string
		want   Object
	}{
		{"a bound claim", reduceClaim, `status: {phase: Bound}`, Object{Ready: true}},
		{"a claim that was just made", reduceClaim, `{}`, Object{Reason: "Pending", Message: "it is Pending and not Bound"}},
		{"a lost claim", reduceClaim, `status: {phase: Lost}`, Object{Reason: "Lost", Message: "it is Lost and not Bound"}},
		{"a snapshot that is ready", reduceSnapshot, `status: {readyToUse: true}`, Object{Ready: true}},
		{"a snapshot that failed", reduceSnapshot, `status: {readyToUse: false, error: {message: offline}}`, Object{Reason: "Failed", Message: "offline"}},
		{"a snapshot that is not ready yet", reduceSnapshot, `{}`, Object{Reason: "NotReadyToUse", Message: "it is not ready to use yet"}},
		{"a DataVolume that succeeded", reduceDataVolume, `status: {phase: Succeeded, progress: 100.0%}`, Object{Ready: true}},
		{"a DataVolume that is imported", reduceDataVolume, `status: {phase: ImportInProgress, progress: 37.52%}`, Object{Importing: true, Progress: "30%", Reason: "ImportInProgress"}},
		{"a DataVolume whose progress nobody knows", reduceDataVolume, `status: {phase: CloneInProgress, progress: N/A}`, Object{Importing: true, Reason: "CloneInProgress"}},
		{"a DataVolume that waits for its worker", reduceDataVolume, `status: {phase: ImportScheduled}`, Object{Importing: true, Reason: "ImportScheduled"}},
		{"a DataVolume that waits for a consumer", reduceDataVolume, `status: {phase: WaitForFirstConsumer}`, Object{Reason: "WaitForFirstConsumer", Message: "its phase is WaitForFirstConsumer"}},
		{"a DataVolume that was just made", reduceDataVolume, `{}`, Object{Reason: "Pending", Message: "its phase is Pending"}},
		{
			"a DataVolume whose importer fails again and again", reduceDataVolume,
			`status: {phase: ImportInProgress, conditions: [{type: Running, status: "False", reason: Error, message: "404 Not Found"}]}`,
			Object{Reason: "Error", Message: "404 Not Found"},
		},
		{"a DataVolume that failed", reduceDataVolume, `status: {phase: Failed}`, Object{Reason: "Failed", Message: "it failed"}},
		{
			"a DataSource that CDI calls ready", reduceDataSource,
			`{metadata: {namespace: golden}, spec: {source: {pvc: {name: old}}}, status: {source: {pvc: {name: disk, namespace: golden}}, conditions: [{type: Ready, status: "True"}]}}`,
			Object{ReadyReported: true, Ready: true, To: disk, Spec: Key{Kind: Claim, Namespace: "golden", Name: "old"}},
		},
		{
			"a DataSource with an image", reduceDataSource,
			`{metadata: {namespace: golden, annotations: {stencil.kubevirt.io/golden-image: fedora, stencil.kubevirt.io/digest: "sha256:0", stencil.kubevirt.io/imported-at: then, stencil.kubevirt.io/stale-after: soon}}, spec: {source: {pvc: {name: disk}}}}`,
			Object{To: disk, Spec: disk, Image: Image{GoldenImage: "fedora", Digest: "sha256:0", ImportedAt: "then", StaleAfter: "soon"}},
		},
		{
			"a DataSource that CDI has not seen", reduceDataSource, `{metadata: {namespace: golden}, spec: {source: {pvc: {name: disk}}}}`,
			Object{To: disk, Spec: disk},
		},
		{
			"a DataSource without its source", reduceDataSource,
			`{metadata: {namespace: golden}, spec: {source: {snapshot: {name: s, namespace: x}}}, status: {source: {}, conditions: [{type: Ready, status: "False", reason: NotFound, message: Snapshot not found}]}}`,
			Object{ReadyReported: true, Reason: "NotFound", Message: "Snapshot not found", To: Key{Snapshot, "x", "s"}, Spec: Key{Snapshot, "x", "s"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.reduce(object(t, tc.text))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyWhatMeansSomethingIsNews(t *testing.T) {
	var received []string
	s := newStore(Claim, watched{reduce: reduceClaim}, func(k Key) { received = append(received, k.String()) })
	bound := object(t, `{metadata: {namespace: golden, name: disk}, status: {phase: Bound}}`)
	touched := bound.DeepCopy()
	touched.SetAnnotations(map[string]string{"touched": "yes"})
	deleting := bound.DeepCopy()
	now := metav1.Now()
	deleting.SetDeletionTimestamp(&now)
	for _, step := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"the first list, of which anything may be news", func() error { return s.Replace(nil, "1") }, []string{"PersistentVolumeClaim "}},
		{"a claim comes", func() error { return s.Add(bound) }, []string{"PersistentVolumeClaim golden/disk"}},
		{"an annotation is nothing", func() error { return s.Update(touched) }, nil},
		{"the same in another list", func() error { return s.Replace([]any{touched}, "2") }, nil},
		{"it is being deleted", func() error { return s.Update(deleting) }, []string{"PersistentVolumeClaim golden/disk"}},
		{"it is gone", func() error { return s.Delete(deleting) }, []string{"PersistentVolumeClaim golden/disk"}},
		{"another list has it again", func() error { return s.Replace([]any{bound}, "3") }, []string{"PersistentVolumeClaim golden/disk"}},
		{"and the next has not", func() error { return s.Replace(nil, "4") }, []string{"PersistentVolumeClaim golden/disk"}},
	} {
		received = nil
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, received); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
	if err := s.Add("no object"); err == nil {
		t.Error("the store takes anything")
	}
}

func TestAKindThatIsInstalledLater(t *testing.T) {
	received := 0
	s := newStore(Network, kinds(nil)[Network], func(Key) { received++ })
	if _, _, unknown := s.get("golden", "vlan"); !errors.Is(unknown, errNotYet) || s.Synced() {
		t.Errorf("before anything: %v", unknown)
	}
	s.failed(errors.New("the connection was reset"))
	if s.Synced() {
		t.Error("a passing failure says nothing")
	}
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "network-attachment-definitions"}, "")
	s.failed(gone)
	s.failed(gone)
	var notServed *NotServedError
	if _, _, unknown := s.get("golden", "vlan"); !errors.As(unknown, &notServed) || !s.Synced() || received != 1 {
		t.Errorf("while it is not served: %v, heard %d", unknown, received)
	}
	if err := s.Replace([]any{&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "golden", Name: "vlan"}}}, "1"); err != nil {
		t.Fatal(err)
	}
	if got, found, unknown := s.get("golden", "vlan"); !found || unknown != nil || !got.Ready || received != 2 {
		t.Errorf("when it is: %+v %v %v, heard %d", got, found, unknown, received)
	}
	s.failed(apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")))
	if _, _, unknown := s.get("golden", "vlan"); unknown == nil || unknown.Error() != "the manager may not list objects of the kind NetworkAttachmentDefinition: grant list and watch on network-attachment-definitions.k8s.cni.cncf.io to its service account" {
		t.Errorf("when it may not be listed: %v", unknown)
	}
}
