package capture

import (
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestWhatWakesARequest checks which changes of a request enqueue it: those by others, but not those of its status, which would cancel the
// increasing intervals of retries.
func TestWhatWakesARequest(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	w := &wake{log: logr.Discard(), byUID: map[types.UID]types.NamespacedName{}, queue: queue}
	store := w.newRequests()
	request := func(change func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
		made := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "golden", Name: "r", UID: "u", Generation: 1, ResourceVersion: "1", Finalizers: []string{"f"},
		}}
		if change != nil {
			change(made)
		}
		return made
	}
	now := metav1.Now()
	deleted := request(func(r *metav1.PartialObjectMetadata) { r.DeletionTimestamp = &now })
	for _, step := range []struct {
		name string
		do   func() error
		want int
	}{
		{"the first list", func() error { return store.Replace([]any{request(nil)}, "1") }, 1},
		{"its status", func() error {
			return store.Update(request(func(r *metav1.PartialObjectMetadata) {
				r.ResourceVersion = "2"
				r.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: fieldManager, Subresource: "status"}}
			}))
		}, 0},
		{"a finalizer that somebody took away", func() error {
			return store.Update(request(func(r *metav1.PartialObjectMetadata) { r.Finalizers = nil }))
		}, 1},
		{"an owner", func() error {
			return store.Update(request(func(r *metav1.PartialObjectMetadata) { r.OwnerReferences = []metav1.OwnerReference{{UID: "t"}} }))
		}, 1},
		{"its deletion", func() error { return store.Update(deleted) }, 1},
		{"its end", func() error { return store.Delete(deleted) }, 0},
		{"another of the name", func() error {
			return store.Add(request(func(r *metav1.PartialObjectMetadata) { r.UID = "u2" }))
		}, 1},
		{"a list after a watch was lost", func() error {
			return store.Replace([]any{request(func(r *metav1.PartialObjectMetadata) { r.UID = "u2" })}, "9")
		}, 1},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := queue.Len(); got != step.want {
			t.Errorf("%s: %d requests are looked at, want %d", step.name, got, step.want)
		}
		for queue.Len() > 0 {
			item, _ := queue.Get()
			queue.Done(item)
		}
	}
}
