package revisions_test

import (
	"bytes"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/harness"
)

// A preference decides how CPUs are presented: its copy in the oldest format is migrated beside that of the instance type, and KubeVirt presents six
// cores, as in the copy, and not the threads of the live preference.
func TestPreferencesDecideTheTopologyAsBefore(t *testing.T) {
	const cores, threads = `{"cpu":{"preferredCPUTopology":"preferCores"}}`, `{"cpu":{"preferredCPUTopology":"preferThreads"}}`
	preferences := schema.GroupVersionResource{Group: "instancetype.kubevirt.io", Version: "v1beta1", Resource: "virtualmachineclusterpreferences"}
	namespace := harness.Namespace(t, plane, "preference")
	w := newWriter(t, nil)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p := newPinned(t, namespace, "web", formatBeta, true)
	preferred := newLive(t, preferences, "VirtualMachineClusterPreference", "cores-"+namespace, cores)
	old := preferred.stored("web")
	store(t, namespace, old, p.vm, preferred.data(formatBeta, cores), preferred.labels("v1beta1"))
	patch(t, virtualMachines, namespace, "web", fmt.Sprintf(`{"spec":{"preference":{"name":%q,"revisionName":%q}}}`, preferred.name, old))
	p.eventually(t, "the copy is used", func(vm *unstructured.Unstructured) error {
		if got, _, _ := unstructured.NestedString(vm.Object, "status", "preferenceRef", "controllerRevisionRef", "name"); got != old {
			return harness.Complaint("the status refers to " + got)
		}
		return nil
	})
	discard(t, namespace, old)
	before := store(t, namespace, old, p.vm, preferred.data(formatSpec, cores), nil)
	p.ages(t)
	patch(t, preferences, "", preferred.name, `{"spec":`+threads+`}`)
	mode(t, v1alpha1.RevisionMigrationApply, namespace)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p.migrated(t)
	after := read(t, namespace, old)
	if after.UID == before.UID || !bytes.HasSuffix(after.Data.Raw, []byte(`"spec":`+cores+`}`)) {
		t.Errorf("the copy of the preference is %s", after.Data.Raw)
	}
	for key, value := range preferred.labels("v1beta1") {
		if after.Labels[key] != value {
			t.Errorf("label %s is %q, want %q", key, after.Labels[key], value)
		}
	}
	p.starts(t, 1)
	vmi, err := objects.Resource(instances).Namespace(namespace).Get(background(t), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedInt64(vmi.Object, "spec", "domain", "cpu", "cores"); got != 6 {
		t.Errorf("it has %d cores, want 6", got)
	}
}
