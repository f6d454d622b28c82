package revisions_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/revision"
	"github.com/vmstencil/stencil/test/harness"
)

// Formats of stored objects.
const (
	formatSpec   = "SpecRevision"
	formatAlpha1 = "v1alpha1"
	formatAlpha2 = "v1alpha2"
	formatBeta   = "v1beta1"

	sixCPUs   = `{"cpu":{"guest":6},"memory":{"guest":"64Mi"}}`
	eightCPUs = `{"cpu":{"guest":8},"memory":{"guest":"64Mi"}}`
)

var (
	virtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	instances       = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}
	migrations      = v1alpha1.GroupVersion.WithResource("revisionmigrations")
	instancetypes   = schema.GroupVersionResource{Group: "instancetype.kubevirt.io", Version: "v1beta1", Resource: "virtualmachineclusterinstancetypes"}
)

func background(t *testing.T) context.Context { return context.WithoutCancel(t.Context()) }

func create(t *testing.T, resource schema.GroupVersionResource, namespace, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(manifest)); err != nil {
		t.Fatal(err)
	}
	created, err := objects.Resource(resource).Namespace(namespace).Create(background(t), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func patch(t *testing.T, resource schema.GroupVersionResource, namespace, name, merge string, subresources ...string) {
	t.Helper()
	if _, err := objects.Resource(resource).Namespace(namespace).Patch(background(t), name, types.MergePatchType, []byte(merge), metav1.PatchOptions{}, subresources...); err != nil {
		t.Fatal(err)
	}
}

// live is an instance type or a preference of which copies are stored. It changes after that.
type live struct {
	kind, name string
	uid        types.UID
}

func newLive(t *testing.T, resource schema.GroupVersionResource, kind, name, spec string) live {
	t.Helper()
	o := create(t, resource, "", fmt.Sprintf(`{"apiVersion":"instancetype.kubevirt.io/v1beta1","kind":%q,"metadata":{"name":%q},"spec":%s}`, kind, name, spec))
	t.Cleanup(func() { _ = objects.Resource(resource).Delete(background(t), name, metav1.DeleteOptions{}) })
	return live{kind, name, o.GetUID()}
}

// data returns the stored copy in a format.
func (l live) data(format, spec string) []byte {
	if format == formatSpec {
		return fmt.Appendf(nil, `{"apiVersion":"instancetype.kubevirt.io/v1alpha1","spec":%q}`, base64.StdEncoding.EncodeToString([]byte(spec)))
	}
	return fmt.Appendf(nil, `{"apiVersion":"instancetype.kubevirt.io/%s","kind":%q,"metadata":{"creationTimestamp":null,"generation":1,"name":%q,"uid":%q},"spec":%s}`, format, l.kind, l.name, l.uid, spec)
}

// stored returns the name of the copy of a VirtualMachine in the old form.
func (l live) stored(vm string) string { return fmt.Sprintf("%s-%s-%s-1", vm, l.name, l.uid) }

// labels returns those of a copy in a version.
func (l live) labels(version string) map[string]string {
	return map[string]string{revision.LabelGeneration: "1", revision.LabelKind: l.kind, revision.LabelName: l.name, revision.LabelUID: string(l.uid), revision.LabelVersion: version}
}

// store creates a copy.
func store(t *testing.T, namespace, name string, owner *unstructured.Unstructured, data []byte, labels map[string]string) *appsv1.ControllerRevision {
	t.Helper()
	r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: runtime.RawExtension{Raw: data}, Revision: 0}
	if owner != nil {
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
	}
	created, err := apps.ControllerRevisions(namespace).Create(background(t), r, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func discard(t *testing.T, namespace, name string) {
	t.Helper()
	if err := apps.ControllerRevisions(namespace).Delete(background(t), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, namespace, name string) *appsv1.ControllerRevision {
	t.Helper()
	r, err := apps.ControllerRevisions(namespace).Get(background(t), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// pinned is a VirtualMachine with a stored copy in an old format, as an older KubeVirt has left it.
type pinned struct {
	namespace, name string
	size            live
	// before is the stored copy of its instance type.
	before *appsv1.ControllerRevision
	vm     *unstructured.Unstructured
}

// storedCopy waits until KubeVirt has stored a copy and has ended its first reconciliations of the VirtualMachine: it patches the status again while its
// cache is older. It returns the name of the copy.
func (p *pinned) storedCopy(t *testing.T) (name string) {
	t.Helper()
	p.eventually(t, "KubeVirt stores a copy", func(vm *unstructured.Unstructured) error {
		if name = statusRevision(vm); name == "" {
			return harness.Complaint("there is none")
		}
		if printable, _, _ := unstructured.NestedString(vm.Object, "status", "printableStatus"); printable != "Stopped" {
			return harness.Complaint("it is " + printable)
		}
		return nil
	})
	return name
}

// newPinned creates a VirtualMachine as KubeVirt does now, and puts a copy in an old format in the place of the current one: inSpec in
// spec.instancetype.revisionName, otherwise in its status. A VirtualMachine with such a copy can be created by no request to this KubeVirt.
func newPinned(t *testing.T, namespace, name, format string, inSpec bool) *pinned {
	t.Helper()
	size := newLive(t, instancetypes, "VirtualMachineClusterInstancetype", "six-"+namespace+"-"+name, sixCPUs)
	p := &pinned{namespace: namespace, name: name, size: size}
	p.vm = create(t, virtualMachines, namespace, fmt.Sprintf(`{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":%q,"labels":{"wave":%q}},
		"spec":{"runStrategy":"Halted","instancetype":{"name":%q},"template":{"spec":{"domain":{"devices":{}}}}}}`, name, name, size.name))
	current := p.storedCopy(t)
	old := size.stored(name)
	store(t, namespace, old, p.vm, size.data(formatBeta, sixCPUs), size.labels("v1beta1"))
	if inSpec {
		patch(t, virtualMachines, namespace, name, fmt.Sprintf(`{"spec":{"instancetype":{"revisionName":%q}}}`, old))
		p.eventually(t, "the copy is used", func(vm *unstructured.Unstructured) error {
			if got := statusRevision(vm); got != old {
				return harness.Complaint("the status refers to " + got)
			}
			return nil
		})
	} else {
		p.refersTo(t, old)
	}
	discard(t, namespace, current)
	discard(t, namespace, old)
	var labels map[string]string
	if format == formatAlpha2 || format == formatBeta {
		labels = size.labels(format)
	}
	p.before = store(t, namespace, old, p.vm, size.data(format, sixCPUs), labels)
	p.eventually(t, "the status still refers to the copy", func(vm *unstructured.Unstructured) error {
		if got := statusRevision(vm); got != old {
			patch(t, virtualMachines, namespace, name, fmt.Sprintf(`{"status":{"instancetypeRef":{"controllerRevisionRef":{"name":%q}}}}`, old), "status")
			return harness.Complaint("the status refers to " + got)
		}
		return nil
	})
	// What is pinned differs from what is live.
	patch(t, instancetypes, "", size.name, `{"spec":`+eightCPUs+`}`)
	return p
}

// refersTo writes a copy into the status of a stopped VirtualMachine. KubeVirt writes the copy that it stored once more if it has not yet seen the
// status then, so that the status is written until KubeVirt has seen a change that followed it: it copies the run strategy to a status that has one already.
func (p *pinned) refersTo(t *testing.T, copied string) {
	t.Helper()
	strategies := []string{"Manual", "Halted"}
	p.eventually(t, "KubeVirt uses copy "+copied, func(vm *unstructured.Unstructured) error {
		if got := statusRevision(vm); got != copied {
			patch(t, virtualMachines, p.namespace, p.name, fmt.Sprintf(`{"status":{"runStrategy":%q,"instancetypeRef":{"controllerRevisionRef":{"name":%q}}}}`, strategies[1], copied), "status")
			patch(t, virtualMachines, p.namespace, p.name, fmt.Sprintf(`{"spec":{"runStrategy":%q}}`, strategies[0]))
			slices.Reverse(strategies)
			return harness.Complaint("the status refers to " + got)
		}
		wanted, _, _ := unstructured.NestedString(vm.Object, "spec", "runStrategy")
		if seen, _, _ := unstructured.NestedString(vm.Object, "status", "runStrategy"); seen != wanted {
			return harness.Complaint("KubeVirt has seen the run strategy " + seen)
		}
		return nil
	})
}

func statusRevision(vm *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(vm.Object, "status", "instancetypeRef", "controllerRevisionRef", "name")
	return name
}

func (p *pinned) eventually(t *testing.T, what string, check func(*unstructured.Unstructured) error) {
	t.Helper()
	harness.Eventually(t, what, func() error {
		vm, err := objects.Resource(virtualMachines).Namespace(p.namespace).Get(background(t), p.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return check(vm)
	})
}

// starts starts the VirtualMachine, and requires that its instance has these CPUs.
func (p *pinned) starts(t *testing.T, sockets int64) {
	t.Helper()
	p.eventually(t, "no snapshot keeps it from starting", func(vm *unstructured.Unstructured) error {
		if name, _, _ := unstructured.NestedString(vm.Object, "status", "snapshotInProgress"); name != "" {
			return harness.Complaint("snapshot " + name + " is in progress")
		}
		return nil
	})
	patch(t, virtualMachines, p.namespace, p.name, `{"spec":{"runStrategy":"Always"}}`)
	harness.Eventually(t, p.name+" starts with its pinned size", func() error {
		vmi, err := objects.Resource(instances).Namespace(p.namespace).Get(background(t), p.name, metav1.GetOptions{})
		if err != nil {
			vm, _ := objects.Resource(virtualMachines).Namespace(p.namespace).Get(background(t), p.name, metav1.GetOptions{})
			status, _ := json.Marshal(vm.Object["status"])
			return fmt.Errorf("%w; status of the VirtualMachine: %s", err, status)
		}
		if got, _, _ := unstructured.NestedInt64(vmi.Object, "spec", "domain", "cpu", "sockets"); got != sockets {
			return fmt.Errorf("it has %d sockets, want %d", got, sockets)
		}
		return nil
	})
}

// migrated requires that the copy was replaced by a converted one of the same name and owner, whose spec has the same bytes.
func (p *pinned) migrated(t *testing.T) {
	t.Helper()
	after := read(t, p.namespace, p.before.Name)
	if after.UID == p.before.UID {
		t.Fatalf("ControllerRevision %s was not replaced", after.Name)
	}
	if !strings.HasSuffix(string(after.Data.Raw), `"spec":`+sixCPUs+`}`) || !strings.HasPrefix(string(after.Data.Raw), `{"apiVersion":"instancetype.kubevirt.io/v1beta1","kind":"VirtualMachineClusterInstancetype"`) {
		t.Errorf("data %s", after.Data.Raw)
	}
	for key, value := range p.size.labels("v1beta1") {
		if after.Labels[key] != value {
			t.Errorf("label %s is %q, want %q", key, after.Labels[key], value)
		}
	}
	if len(after.OwnerReferences) != 1 || after.OwnerReferences[0].UID != p.vm.GetUID() || after.OwnerReferences[0].Controller == nil {
		t.Errorf("owners %v", after.OwnerReferences)
	}
}

// mode writes the spec of the RevisionMigration, for a namespace alone.
func mode(t *testing.T, wanted v1alpha1.RevisionMigrationMode, namespace string, more ...string) {
	t.Helper()
	spec := fmt.Sprintf(`"mode":%q,"namespaces":[%q],"rate":0,"selector":null,"backupTTL":"168h"`, wanted, namespace)
	for _, field := range more {
		spec += "," + field
	}
	harness.Must(t, plane, nil, "", "patch", "revisionmigration", v1alpha1.RevisionMigrationName, "--type=merge", "-p", `{"spec":{`+spec+`}}`)
}

func status(t *testing.T) v1alpha1.RevisionMigrationStatus {
	t.Helper()
	o, err := objects.Resource(migrations).Get(background(t), v1alpha1.RevisionMigrationName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var m v1alpha1.RevisionMigration
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &m); err != nil {
		t.Fatal(err)
	}
	return m.Status
}
