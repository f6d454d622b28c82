package observed

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/fixture"
)

const owned = `ownerReferences: [{kind: VirtualMachine, name: web, uid: vm-1, controller: true}]`

func TestWhatIsRetained(t *testing.T) {
	for name, tc := range map[string]struct {
		reduce reducer
		text   string
		want   Object
	}{
		"of a machine": {reduceVM, `{metadata: {name: web, uid: vm-1}, spec: {a: b}}`, Object{Name: "web", UID: "vm-1"}},
		"of an instance": {
			reduceInstance,
			`{metadata: {name: web, uid: i-1, ` + owned + `, annotations: {hooks.kubevirt.io/hookSidecars: "[]"}}, spec: {
				domain: {firmware: {kernelBoot: {container: {image: kernel}}}}, volumes: [{name: a, containerDisk: {image: disk}}, {name: b}]}}`,
			Object{Name: "web", UID: "i-1", OwnerKind: "VirtualMachine", OwnerUID: "vm-1", Disks: []string{"disk", "kernel"}, Sidecars: "[]"},
		},
		"of an instance that no owner controls": {
			reduceInstance, `{metadata: {name: web, uid: i-1, ownerReferences: [{kind: VirtualMachine, uid: vm-1}]}}`, Object{Name: "web", UID: "i-1"},
		},
		"of a pod": {
			reducePod,
			`{metadata: {name: p, uid: p-1}, spec: {initContainers: [{name: a, image: A}], containers: [{name: b, image: B}], ephemeralContainers: [{name: c, image: C}]}}`,
			Object{Name: "p", UID: "p-1", Containers: []Container{{"a", "A"}, {"b", "B"}, {"c", "C"}}},
		},
		"of a pod that has ended":           {reducePod, `{metadata: {name: p}, status: {phase: Succeeded}}`, Object{Name: "p", Ended: true}},
		"of a pod that has failed":          {reducePod, `{metadata: {name: p}, status: {phase: Failed}}`, Object{Name: "p", Ended: true}},
		"of a pod that is being deleted":    {reducePod, `{metadata: {name: p, deletionTimestamp: "2026-11-23T00:00:00Z"}}`, Object{Name: "p", Ended: true}},
		"of a claim":                        {reduceClaim, `{metadata: {name: c, uid: c-1}}`, Object{Name: "c", UID: "c-1"}},
		"of an object of unexpected fields": {reducePod, `{metadata: {name: p}, spec: {containers: [x, {name: 1}]}, status: x}`, Object{Name: "p", Containers: []Container{{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.reduce.reduced(fixture.Object(t, tc.text)), cmpopts.IgnoreFields(Object{}, "Digest")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsNoChange checks that the frequent writes of KubeVirt's controllers report nothing.
func TestWhatIsNoChange(t *testing.T) {
	for name, tc := range map[string]struct {
		reduce      reducer
		before, now string
		want        bool
	}{
		"the status of an instance": {reduceInstance, `{metadata: {name: a, resourceVersion: "1", generation: 1}, spec: {a: b}, status: {phase: Scheduled}}`,
			`{metadata: {name: a, resourceVersion: "2", generation: 2, managedFields: [{manager: m}]}, spec: {a: b}, status: {phase: Running}}`, false},
		"an annotation of an instance": {reduceInstance, `{metadata: {name: a}}`, `{metadata: {name: a, annotations: {a: b}}}`, true},
		"a label of an instance":       {reduceInstance, `{metadata: {name: a}}`, `{metadata: {name: a, labels: {a: b}}}`, true},
		"the spec of an instance":      {reduceInstance, `{metadata: {name: a}, spec: {a: b}}`, `{metadata: {name: a}, spec: {a: c}}`, true},
		"an owner of an instance":      {reduceInstance, `{metadata: {name: a}}`, `{metadata: {name: a, ` + owned + `}}`, true},
		"a finalizer of an instance":   {reduceInstance, `{metadata: {name: a}}`, `{metadata: {name: a, finalizers: [a/b]}}`, true},
		"an instance of the same name": {reduceInstance, `{metadata: {name: a, uid: a}}`, `{metadata: {name: a, uid: b}}`, true},
		"conditions of a machine":      {reduceVM, `{metadata: {name: a}, status: {created: true}}`, `{metadata: {name: a}, status: {created: true, ready: true, conditions: [a]}}`, false},
		"a machine that is started":    {reduceVM, `{metadata: {name: a}}`, `{metadata: {name: a}, status: {created: true}}`, true},
		"the size of a machine":        {reduceVM, `{metadata: {name: a}}`, `{metadata: {name: a}, status: {instancetypeRef: {name: b}}}`, true},
		"the state of a pod":           {reducePod, `{metadata: {name: a}, status: {phase: Pending}}`, `{metadata: {name: a, annotations: {a: b}}, status: {phase: Running}}`, false},
		"the image of a pod":           {reducePod, `{metadata: {name: a}, spec: {containers: [{name: a, image: b}]}}`, `{metadata: {name: a}, spec: {containers: [{name: a, image: c}]}}`, true},
		"a pod that ends":              {reducePod, `{metadata: {name: a}}`, `{metadata: {name: a}, status: {phase: Failed}}`, true},
		"the progress of a claim":      {reduceClaim, `{metadata: {name: a}}`, `{metadata: {name: a, annotations: {a: b}}, status: {phase: Bound}}`, false},
		"a label of a claim":           {reduceClaim, `{metadata: {name: a}}`, `{metadata: {name: a, labels: {a: b}}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatch()
			s := w.instances
			if err := s.Add(received(t, tc.reduce, "team-a", tc.before)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"team-a"}, w.Take()); diff != "" {
				t.Errorf("what is new is no change: %s", diff)
			}
			changed := w.Changed()
			if err := s.Update(received(t, tc.reduce, "team-a", tc.now)); err != nil {
				t.Fatal(err)
			}
			if got := len(w.Take()) > 0; got != tc.want || closed(changed) != tc.want {
				t.Errorf("changed: %v, want %v", got, tc.want)
			}
		})
	}
}

// received returns an object in the form in which the reflector receives it.
func received(t *testing.T, reduce reducer, namespace, text string) *watching.Object[Object] {
	t.Helper()
	value := reduce.reduced(fixture.Object(t, text))
	return &watching.Object[Object]{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: value.Name}, Value: value}
}

func closed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

func TestListsAndDeletions(t *testing.T) {
	w := newWatch()
	pod := func(namespace, name, image string) any {
		return received(t, reducePod, namespace, `{metadata: {name: `+name+`}, spec: {containers: [{name: compute, image: `+image+`}]}}`)
	}
	if w.Synced() {
		t.Error("it is synced before there was a list")
	}
	replace := func(want []string, objects ...any) {
		t.Helper()
		if err := w.pods.Replace(objects, ""); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, w.Take()); diff != "" {
			t.Errorf("changed (-want +got):\n%s", diff)
		}
	}
	replace([]string{"a", "b"}, pod("a", "one", "i"), pod("b", "two", "i"))
	replace(nil, pod("a", "one", "i"), pod("b", "two", "i"))
	replace([]string{"b"}, pod("a", "one", "i"), pod("b", "two", "j"))
	replace([]string{"b", "c"}, pod("a", "one", "i"), pod("c", "two", "j"))
	if got := w.Pods("a"); len(got) != 1 || got[0].Name != "one" || len(w.Pods("b")) > 0 {
		t.Errorf("pods: %v, %v", got, w.Pods("b"))
	}
	if err := w.pods.Delete(pod("a", "one", "i")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a"}, w.Take()); diff != "" || len(w.Pods("a")) > 0 {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	// A kind that is not served has no objects. If a kind cannot be read, the stored objects are retained.
	w.pods.FailIfNotServed(errors.New("busy"))
	if len(w.Pods("c")) != 1 {
		t.Error("a failure has forgotten what is known")
	}
	for _, s := range []*index{w.vms, w.instances, w.claims, w.pods} {
		s.FailIfNotServed(apierrors.NewNotFound(schema.GroupResource{}, ""))
	}
	if !w.Synced() || len(w.Pods("c")) > 0 {
		t.Errorf("synced: %v, pods: %v", w.Synced(), w.Pods("c"))
	}
}
