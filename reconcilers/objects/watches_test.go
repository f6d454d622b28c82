package objects

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/await"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

func newQueue(t *testing.T) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	return queue
}

func TestReduce(t *testing.T) {
	s := waitingVM(t, testKeys(), webSecret)
	got := reduce(s.vm)
	if want := (waiting{UID: "u1", Key: slices.Collect(maps.Keys(s.keys))[0], Nonce: s.pending()[:48]}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	again, err := s.progressed(pendingOf(t, webSecret))
	if err != nil {
		t.Fatal(err)
	}
	annotate(s.vm, contract.AnnotationPendingObjects, again[2].Value.(string))
	if reduce(s.vm) == got {
		t.Error("an annotation that was encrypted again is no change")
	}
	for name, tc := range map[string]struct {
		metadata string
		want     waiting
	}{
		"no annotation":           {"uid: u1", waiting{}},
		"a VM that is deleted":    {`uid: u1, deletionTimestamp: "2026-06-01T12:00:00Z", annotations: {objects.template.kubevirt.io/pending: a}`, waiting{}},
		"an annotation of a user": {"uid: u1, annotations: {objects.template.kubevirt.io/pending: a}", waiting{UID: "u1", Key: "a", Nonce: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, reduce(fixture.Object(t, "metadata: {"+tc.metadata+"}"))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatWakesAVM(t *testing.T) {
	w := newWake(wake{queue: newQueue(t)})
	vm := func(name string, value waiting) *watching.Object[waiting] {
		return &watching.Object[waiting]{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}, Value: value}
	}
	first, second := waiting{UID: "u1", Key: "k1", Nonce: "k1:a"}, waiting{UID: "u2", Key: "k2", Nonce: "k2:a"}
	progressed := waiting{UID: "u1", Key: "k3", Nonce: "k3:b"}
	notServed := apierrors.NewNotFound(virtualMachines.GroupResource(), "")
	for _, step := range []struct {
		name      string
		do        func() error
		want      []string
		wantKeys  []string
		wantKnown bool
	}{
		{name: "before the list", do: func() error { return nil }},
		{
			name: "the first list", do: func() error {
				return w.vms.Replace([]any{vm("web-1", first), vm("web-2", second), vm("done", waiting{})}, "1")
			}, want: []string{"web-1", "web-2"}, wantKeys: []string{"k1", "k2"}, wantKnown: true,
		},
		{name: "a change of something else", do: func() error { return w.vms.Update(vm("web-1", first)) }, wantKeys: []string{"k1", "k2"}, wantKnown: true},
		{name: "some of its objects exist", do: func() error { return w.vms.Update(vm("web-1", progressed)) }, want: []string{"web-1"}, wantKeys: []string{"k2", "k3"}, wantKnown: true},
		{name: "all of them exist", do: func() error { return w.vms.Update(vm("web-1", waiting{})) }, wantKeys: []string{"k2"}, wantKnown: true},
		{name: "a VM without objects", do: func() error { return w.vms.Add(vm("web-3", waiting{})) }, wantKeys: []string{"k2"}, wantKnown: true},
		{name: "a deletion", do: func() error { return w.vms.Delete(vm("web-2", second)) }, wantKnown: true},
		{name: "another VM of the name", do: func() error { return w.vms.Add(vm("web-2", first)) }, want: []string{"web-2"}, wantKeys: []string{"k1"}, wantKnown: true},
		{name: "a watch that fails", do: func() error { w.vms.FailIfNotServed(errors.New("gone")); return nil }, wantKeys: []string{"k1"}, wantKnown: true},
		// KubeVirt's definitions may come back with all VMs.
		{name: "an API server that does not serve VMs", do: func() error { w.vms.FailIfNotServed(notServed); return nil }},
		{name: "that serves them again", do: func() error { return w.vms.Replace([]any{vm("web-2", first)}, "2") }, want: []string{"web-2"}, wantKeys: []string{"k1"}, wantKnown: true},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for w.queue.Len() > 0 {
			request, _ := w.queue.Get()
			w.queue.Done(request)
			if request.Namespace != "team-a" {
				t.Errorf("%s: it enqueued %s", step.name, request)
			}
			got = append(got, request.Name)
		}
		slices.Sort(got)
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: enqueued (-want +got):\n%s", step.name, diff)
		}
		inUse, known := w.keys()
		if diff := cmp.Diff(step.wantKeys, slices.Sorted(maps.Keys(inUse))); diff != "" {
			t.Errorf("%s: keys in use (-want +got):\n%s", step.name, diff)
		}
		if known != step.wantKnown {
			t.Errorf("%s: known is %v", step.name, known)
		}
	}
}

func TestAChangeOfTheKeysWakesTheirReconciler(t *testing.T) {
	queue := newQueue(t)
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "stencil-system", Name: "stencil-object-keys"}}
	var changed await.Signal
	if err := single.OnChange(request, 0, changed.Changed).Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if queue.Len() != 0 {
		t.Error("it is enqueued without a change")
	}
	for range 2 {
		changed.Send()
		fixture.Eventually(t, func() bool { return queue.Len() == 1 })
		got, _ := queue.Get()
		queue.Done(got)
		if got != request {
			t.Errorf("it enqueued %s", got)
		}
	}
}
