package revisions_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/harness"
)

var (
	snapshots = schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinesnapshots"}
	restores  = schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinerestores"}
	contents  = schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinesnapshotcontents"}
)

// What is never touched, and the reason that the report has.
func TestWhatIsSkipped(t *testing.T) {
	namespace := harness.Namespace(t, plane, "skipped")
	w := newWriter(t, nil)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	web := newPinned(t, namespace, "web", formatAlpha2, true)
	other := newPinned(t, namespace, "other", formatAlpha2, true)
	for _, one := range []struct {
		name, data string
		change     func(name string)
		want       string
	}{
		{name: "unknown-field", data: strings.Replace(string(web.size.data(formatAlpha2, sixCPUs)), `"guest":6`, `"guest":6,"sockets":2`, 1), want: `spec: unknown field "cpu.sockets"`},
		{name: "orphan-spec", data: string(web.size.data(formatSpec, sixCPUs)), want: "no VirtualMachine, snapshot or start revision refers to it, so the name of its instance type or preference is not known"},
		{name: "finalizer", data: string(web.size.data(formatAlpha2, sixCPUs)), want: "it has finalizers", change: func(name string) { amend(t, namespace, name, `{"metadata":{"finalizers":["example.org/x"]}}`) }},
		{name: "two-owners", data: string(web.size.data(formatAlpha2, sixCPUs)), want: "2 objects own it", change: func(name string) {
			amend(t, namespace, name, fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","name":"web","uid":%q},{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","name":"other","uid":%q}]}}`, web.vm.GetUID(), other.vm.GetUID()))
		}},
		{name: "another-owner", data: string(web.size.data(formatAlpha2, sixCPUs)), want: "a ConfigMap owns it", change: func(name string) {
			owner := harness.Must(t, plane, nil, "", "get", "configmap", "kube-root-ca.crt", "-n", namespace, "-o", "jsonpath={.metadata.uid}").Stdout
			amend(t, namespace, name, fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"kube-root-ca.crt","uid":%q}]}}`, owner))
		}},
	} {
		store(t, namespace, one.name, nil, []byte(one.data), nil)
		if one.change != nil {
			one.change(one.name)
		}
		t.Cleanup(func() { amend(t, namespace, one.name, `{"metadata":{"finalizers":null}}`) })
		before := read(t, namespace, one.name)
		mode(t, v1alpha1.RevisionMigrationApply, namespace)
		if err := w.pass(t); err != nil {
			t.Fatal(err)
		}
		if after := read(t, namespace, one.name); after.UID != before.UID {
			t.Errorf("%s was replaced", one.name)
		}
		want := v1alpha1.RevisionFinding{Kind: v1alpha1.RevisionSkipped, Namespace: namespace, Object: "ControllerRevision " + one.name, Message: one.want}
		if s := status(t); !slices.Contains(s.Findings, want) {
			t.Errorf("findings %+v, want %+v", s.Findings, want)
		}
	}
	web.migrated(t)
	other.migrated(t)
}

// A selector selects owners.
func TestTheSelectorSelectsOwners(t *testing.T) {
	namespace := harness.Namespace(t, plane, "selector")
	w := newWriter(t, nil)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	first, later := newPinned(t, namespace, "first", formatAlpha2, true), newPinned(t, namespace, "later", formatAlpha2, true)
	mode(t, v1alpha1.RevisionMigrationApply, namespace, `"selector":{"matchLabels":{"wave":"first"}}`)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	first.migrated(t)
	if read(t, namespace, later.before.Name).UID != later.before.UID {
		t.Error("a copy was replaced that the selector does not select")
	}
}

func amend(t *testing.T, namespace, name, merge string) {
	t.Helper()
	if _, err := apps.ControllerRevisions(namespace).Patch(background(t), name, types.MergePatchType, []byte(merge), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A quota that no replacement fits into denies it before anything is deleted.
func TestAQuotaDeniesBeforeTheDeletion(t *testing.T) {
	namespace := harness.Namespace(t, plane, "quota")
	w := newWriter(t, nil)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p := newPinned(t, namespace, "web", formatAlpha2, true)
	harness.Must(t, plane, nil, "", "create", "quota", "none", "-n", namespace, "--hard=count/controllerrevisions.apps=1")
	harness.Eventually(t, "the quota is enforced", func() error {
		if used := harness.Must(t, plane, nil, "", "get", "quota", "none", "-n", namespace, "-o", "jsonpath={.status.used}").Stdout; !strings.Contains(used, `:"1"`) {
			return harness.Complaint("used: " + used)
		}
		return nil
	})
	mode(t, v1alpha1.RevisionMigrationApply, namespace)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	if read(t, namespace, p.before.Name).UID != p.before.UID {
		t.Error("it was replaced")
	}
	if left := backups(t, namespace); len(left) != 0 {
		t.Errorf("backups %v", left)
	}
}

// Labels are mutable: a copy in the current version is only labelled.
func TestWrongLabelsAreOnlyWritten(t *testing.T) {
	namespace := harness.Namespace(t, plane, "labels")
	w := newWriter(t, nil)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	size := newLive(t, instancetypes, "VirtualMachineClusterInstancetype", "six-"+namespace, sixCPUs)
	before := store(t, namespace, "unlabelled", nil, size.data(formatBeta, sixCPUs), map[string]string{"mine": "stays"})
	mode(t, v1alpha1.RevisionMigrationApply, namespace)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	after := read(t, namespace, "unlabelled")
	if after.UID != before.UID || !bytes.Equal(after.Data.Raw, before.Data.Raw) || after.Labels["mine"] != "stays" {
		t.Errorf("after %+v", after)
	}
	for key, value := range size.labels("v1beta1") {
		if after.Labels[key] != value {
			t.Errorf("label %s is %q, want %q", key, after.Labels[key], value)
		}
	}
}

// A snapshot of a stopped VirtualMachine: its copy is migrated, and KubeVirt restores the VirtualMachine with it.
func TestSnapshotsAreRestoredWithTheirCopy(t *testing.T) {
	namespace := harness.Namespace(t, plane, "snapshot")
	w := newWriter(t, nil)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p := newPinned(t, namespace, "web", formatSpec, true)
	create(t, snapshots, namespace, `{"apiVersion":"snapshot.kubevirt.io/v1beta1","kind":"VirtualMachineSnapshot","metadata":{"name":"before"},"spec":{"source":{"apiGroup":"kubevirt.io","kind":"VirtualMachine","name":"web"}}}`)
	succeeds(t, snapshots, namespace, "before", `"phase":"Succeeded"`)
	copied := strings.Replace(p.before.Name, "web", "before", 1)
	snapshotted := read(t, namespace, copied)
	content := onlyContent(t, namespace)
	mode(t, v1alpha1.RevisionMigrationApply, namespace)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p.migrated(t)
	after := read(t, namespace, copied)
	if after.UID == snapshotted.UID || len(after.OwnerReferences) != 1 || after.OwnerReferences[0].Kind != "VirtualMachineSnapshot" || !bytes.HasSuffix(after.Data.Raw, []byte(`"spec":`+sixCPUs+`}`)) {
		t.Errorf("the copy of the snapshot is %+v", after)
	}
	if got := onlyContent(t, namespace); got != content {
		t.Errorf("the content has changed: %s, was %s", got, content)
	}
	create(t, restores, namespace, `{"apiVersion":"snapshot.kubevirt.io/v1beta1","kind":"VirtualMachineRestore","metadata":{"name":"back"},"spec":{"target":{"apiGroup":"kubevirt.io","kind":"VirtualMachine","name":"web"},"virtualMachineSnapshotName":"before"}}`)
	succeeds(t, restores, namespace, "back", `"complete":true`)
	p.starts(t, 6)
}

// A snapshot of a stopped VirtualMachine whose copy only its status names refers to no copy: KubeVirt restores it with the live object. Nothing can
// change a snapshot, so it is reported.
func TestASnapshotWithoutACopyIsReported(t *testing.T) {
	namespace := harness.Namespace(t, plane, "unpinned")
	w := newWriter(t, nil)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	newPinned(t, namespace, "web", formatBeta, false)
	create(t, snapshots, namespace, `{"apiVersion":"snapshot.kubevirt.io/v1beta1","kind":"VirtualMachineSnapshot","metadata":{"name":"before"},"spec":{"source":{"apiGroup":"kubevirt.io","kind":"VirtualMachine","name":"web"}}}`)
	succeeds(t, snapshots, namespace, "before", `"phase":"Succeeded"`)
	mode(t, v1alpha1.RevisionMigrationReport, namespace)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.RevisionFinding{
		Kind: v1alpha1.RevisionUnpinned, Namespace: namespace, Object: "VirtualMachineSnapshot before",
		Message: "spec.instancetype refers to no ControllerRevision, so that a restored VirtualMachine has the live object",
	}
	if s := status(t); !slices.Contains(s.Findings, want) {
		t.Errorf("findings %+v, want %+v", s.Findings, want)
	}
}

func onlyContent(t *testing.T, namespace string) string {
	t.Helper()
	list, err := objects.Resource(contents).Namespace(namespace).List(background(t), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatal(err, len(list.Items))
	}
	return specOf(t, &list.Items[0])
}

// succeeds waits until the status of an object contains a text.
func succeeds(t *testing.T, resource schema.GroupVersionResource, namespace, name, text string) {
	t.Helper()
	harness.Eventually(t, resource.Resource+" "+name+" has "+text, func() error {
		o, err := objects.Resource(resource).Namespace(namespace).Get(background(t), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		raw, err := (&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Status", "status": o.Object["status"]}}).MarshalJSON()
		if err != nil {
			return err
		}
		if !strings.Contains(string(raw), text) {
			return harness.Complaint(string(raw))
		}
		return nil
	})
}

// A shared copy, referred to by another VirtualMachine than its owner, stays with its owner, and both use it.
func TestASharedCopyStays(t *testing.T) {
	namespace := harness.Namespace(t, plane, "shared")
	w := newWriter(t, nil)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p := newPinned(t, namespace, "web", formatBeta, true)
	mode(t, v1alpha1.RevisionMigrationApply, namespace)
	second := create(t, virtualMachines, namespace, fmt.Sprintf(`{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"second"},
		"spec":{"runStrategy":"Halted","instancetype":{"name":%q},"template":{"spec":{"domain":{"devices":{}}}}}}`, p.size.name))
	q := &pinned{namespace: namespace, name: "second", vm: second, size: p.size}
	q.storedCopy(t)
	q.refersTo(t, p.before.Name)
	p.ages(t)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p.migrated(t)
	q.starts(t, 6)
	p.starts(t, 6)
}

// KubeVirt is being upgraded: nothing is written.
func TestNothingIsWrittenWhileKubeVirtIsUpgraded(t *testing.T) {
	namespace := harness.Namespace(t, plane, "upgrade")
	w := newWriter(t, nil)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p := newPinned(t, namespace, "web", formatAlpha2, true)
	kubevirt := schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "kubevirts"}
	patch(t, kubevirt, "kubevirt", "kubevirt", `{"status":{"phase":"Deploying","targetKubeVirtVersion":"v1.9.0","observedKubeVirtVersion":"v1.8.2"}}`, "status")
	end := func() {
		patch(t, kubevirt, "kubevirt", "kubevirt", `{"status":{"phase":"Deployed","targetKubeVirtVersion":null,"observedKubeVirtVersion":null}}`, "status")
	}
	t.Cleanup(end)
	mode(t, v1alpha1.RevisionMigrationApply, namespace)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	if read(t, namespace, p.before.Name).UID != p.before.UID {
		t.Error("it was replaced")
	}
	want := v1alpha1.RevisionFinding{Kind: v1alpha1.RevisionSkipped, Namespace: namespace, Object: "ControllerRevision " + p.before.Name, Message: `KubeVirt is being deployed or upgraded: phase "Deploying", version "v1.8.2" of "v1.9.0"`}
	if s := status(t); !slices.Contains(s.Findings, want) {
		t.Errorf("findings %+v, want %+v", s.Findings, want)
	}
	end()
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p.migrated(t)
}
