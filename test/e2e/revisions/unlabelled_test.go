package revisions_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
)

// VirtualMachines whose copy is in the current version and has no labels, as some KubeVirt left it. Only labels are written, and KubeVirt starts them
// with the size that was stored: without the labels it would give the live size to one whose status alone refers to the copy. virt-controller
// upgrades such copies as well, so it starts only after the pass.
func TestUnlabelledCopiesOfVirtualMachines(t *testing.T) {
	withoutKubeVirt(t)
	t.Run("one that changes meanwhile is left to the next pass", leavesAChangedCopy)
	namespace := harness.Namespace(t, plane, "unlabelled")
	w := newWriter(t, nil)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	vms := []*pinned{newUnlabelled(t, namespace, "in-spec", true), newUnlabelled(t, namespace, "in-status", false)}
	reports := func(want string) {
		t.Helper()
		if err := w.pass(t); err != nil {
			t.Fatal(err)
		}
		s := status(t)
		if got := fmt.Sprintf("%+v dangling %d mismatched %d skipped %d", s.Classes, *s.Dangling, *s.Mismatched, *s.Skipped); got != want {
			t.Errorf("the report has %s, want %s", got, want)
		}
	}
	mode(t, v1alpha1.RevisionMigrationReport, namespace)
	reports("[{Version:v1beta1 Class:Unlabelled Count:2}] dangling 0 mismatched 0 skipped 0")
	mode(t, v1alpha1.RevisionMigrationApply, namespace)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, p := range vms {
		versions[p.name] = p.labelled(t)
	}
	if left := backups(t, namespace); len(left) != 0 {
		t.Errorf("backups %v", left)
	}
	// A later pass writes nothing.
	reports("[{Version:v1beta1 Class:Current Count:2}] dangling 0 mismatched 0 skipped 0")
	for _, p := range vms {
		if got := p.labelled(t); got != versions[p.name] {
			t.Errorf("ControllerRevision %s was written again", p.before.Name)
		}
	}
	if err := plane.StartKubeVirt(background(t)); err != nil {
		t.Fatal(err)
	}
	for _, p := range vms {
		p.starts(t, 6)
		p.eventually(t, "it refers to the same copy", func(vm *unstructured.Unstructured) error {
			if got := statusRevision(vm); got != p.before.Name {
				return harness.Complaint("the status refers to " + got)
			}
			return nil
		})
		p.labelled(t)
	}
}

// A copy changes after it was read, as when virt-controller labels it at the same moment.
func leavesAChangedCopy(t *testing.T) {
	namespace := harness.Namespace(t, plane, "changed")
	var p *pinned
	changed := false
	w := newWriter(t, func(after bool, request *http.Request) bool {
		if !after && !changed && p != nil && request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/"+p.before.Name) {
			changed = true
			amend(t, namespace, p.before.Name, `{"metadata":{"annotations":{"changed":"meanwhile"}}}`)
		}
		return false
	})
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p = newUnlabelled(t, namespace, "web", true)
	mode(t, v1alpha1.RevisionMigrationApply, namespace)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	if !changed {
		t.Fatal("it was not written")
	}
	if got := read(t, namespace, p.before.Name); len(got.Labels) != 0 {
		t.Errorf("labels %v", got.Labels)
	}
	if s := status(t); *s.Skipped != 1 || !strings.Contains(fmt.Sprint(s.Findings), "it was changed or deleted meanwhile") {
		t.Errorf("the report has %d skipped: %+v", *s.Skipped, s.Findings)
	}
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p.labelled(t)
	discard(t, namespace, p.before.Name)
	p.must(t, "", "delete", "vm", p.name)
}

// withoutKubeVirt gives the test a plane with KubeVirt's CRDs and no process of it.
func withoutKubeVirt(t *testing.T) {
	t.Helper()
	before, beforeApps, beforeObjects := plane, apps, objects
	p, err := controlplane.Start(background(t), controlplane.Options{VirtualizationCRDs: true, ControllerManager: true, Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		plane, apps, objects = before, beforeApps, beforeObjects
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := use(background(t), p); err != nil {
		t.Fatal(err)
	}
}

// newUnlabelled creates a stopped VirtualMachine with an unlabelled copy in the current version, to which its spec refers, or its status alone.
func newUnlabelled(t *testing.T, namespace, name string, inSpec bool) *pinned {
	t.Helper()
	size := newLive(t, instancetypes, "VirtualMachineClusterInstancetype", "six-"+namespace+"-"+name, sixCPUs)
	p := &pinned{namespace: namespace, name: name, size: size}
	reference := ""
	if inSpec {
		reference = fmt.Sprintf(`,"revisionName":%q`, size.stored(name))
	}
	p.vm = create(t, virtualMachines, namespace, fmt.Sprintf(`{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":%q},
		"spec":{"runStrategy":"Halted","instancetype":{"name":%q%s},"template":{"spec":{"domain":{"devices":{}}}}}}`, name, size.name, reference))
	p.before = store(t, namespace, size.stored(name), p.vm, size.data(formatBeta, sixCPUs), nil)
	patch(t, virtualMachines, namespace, name, fmt.Sprintf(`{"status":{"instancetypeRef":{"name":%q,"kind":%q,"controllerRevisionRef":{"name":%q}}}}`, size.name, size.kind, p.before.Name), "status")
	patch(t, instancetypes, "", size.name, `{"spec":`+eightCPUs+`}`)
	return p
}

// labelled requires that the copy has its five labels, and is otherwise as it was. It returns its version.
func (p *pinned) labelled(t *testing.T) string {
	t.Helper()
	after := read(t, p.namespace, p.before.Name)
	if after.UID != p.before.UID || !bytes.Equal(after.Data.Raw, p.before.Data.Raw) || len(after.OwnerReferences) != 1 || !metav1.IsControlledBy(after, p.vm) {
		t.Errorf("ControllerRevision %s is %+v", after.Name, after)
	}
	for key, value := range p.size.labels("v1beta1") {
		if after.Labels[key] != value {
			t.Errorf("label %s of %s is %q, want %q", key, after.Name, after.Labels[key], value)
		}
	}
	return after.ResourceVersion
}
