package capture

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cache/watching"
)

// wake enqueues requests. It watches metadata of the requests and, by the label with the UID of a request, of the objects created for them.
// Of these objects it stores only names. Every few seconds it checks for kinds that the API server does not serve yet. When such a kind is
// served, all requests are enqueued.
type wake struct {
	client metadata.Interface
	served discovery.ServerResourcesInterface
	log    logr.Logger

	mutex sync.Mutex
	// byUID holds the names of the existing requests.
	byUID map[types.UID]types.NamespacedName
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newWake(config *rest.Config, log logr.Logger) (*wake, error) {
	client, err1 := metadata.NewForConfig(config)
	served, err2 := discovery.NewDiscoveryClientForConfig(config)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("making the clients that watch captures: %w", err)
	}
	return &wake{client: client, served: served, log: log, byUID: map[types.UID]types.NamespacedName{}}, nil
}

// source starts the watches together with a controller.
func (w *wake) source() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.queue = queue
		late := []watching.Late{w.watch(requests, "", w.newRequests())}
		for _, each := range []resource{snapshots, dataVolumes, templates} {
			late = append(late, w.watch(each, v1beta1.LabelRequestUID, w.newCreated(each.Resource)))
		}
		go watching.RunLate(ctx, w.log, w.served, late...)
		return nil
	})
}

// watch returns the watch that writes the objects of a kind to an index.
func (w *wake) watch(of resource, selector string, into cache.ReflectorStore) watching.Late {
	return watching.Late{
		Name: "capture-" + of.Resource, Resource: of.GroupVersionResource, Example: &metav1.PartialObjectMetadata{}, Into: into,
		Source: watching.Source(w.client.Resource(of.GroupVersionResource), watching.Selector{Labels: selector}),
	}
}

func (w *wake) add(key types.NamespacedName) { w.queue.Add(reconcile.Request{NamespacedName: key}) }

// enqueue enqueues the request with this UID, if there is one.
func (w *wake) enqueue(uid types.UID) {
	w.mutex.Lock()
	key, found := w.byUID[uid]
	w.mutex.Unlock()
	if found {
		w.add(key)
	}
}

// enqueueAll enqueues all requests.
func (w *wake) enqueueAll() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, key := range w.byUID {
		w.add(key)
	}
}

// newRequests returns the index of the requests. A change of the status alone, which this controller writes, does not enqueue a request: the
// status reports a failed step, and the step would be retried at once instead of at increasing intervals.
func (w *wake) newRequests() *watching.Index[*metav1.PartialObjectMetadata, metav1.ObjectMeta] {
	return watching.NewIndex(watching.Options[*metav1.PartialObjectMetadata, metav1.ObjectMeta]{
		Kind: requests.Resource,
		// Only metadata that does not change with the status.
		Convert: func(request *metav1.PartialObjectMetadata, _ metav1.ObjectMeta, _ bool) (metav1.ObjectMeta, error) {
			return metav1.ObjectMeta{
				UID: request.UID, Generation: request.Generation, DeletionTimestamp: request.DeletionTimestamp,
				Finalizers: request.Finalizers, OwnerReferences: request.OwnerReferences,
			}, nil
		},
		Equal: func(before, after metav1.ObjectMeta) bool { return equality.Semantic.DeepEqual(before, after) },
		Changed: func(update watching.Update[metav1.ObjectMeta]) {
			w.mutex.Lock()
			for _, each := range update.Changes {
				delete(w.byUID, each.Before.UID)
				if each.Exists {
					w.byUID[each.After.UID] = each.NamespacedName
					w.add(each.NamespacedName)
				}
			}
			w.mutex.Unlock()
			if update.Listed {
				w.enqueueAll()
			}
		},
	})
}

// newCreated returns the index of the objects of one kind that were created for requests: the UIDs of their requests.
func (w *wake) newCreated(kind string) *watching.Index[*metav1.PartialObjectMetadata, types.UID] {
	return watching.NewIndex(watching.Options[*metav1.PartialObjectMetadata, types.UID]{
		Kind: kind,
		Convert: func(created *metav1.PartialObjectMetadata, _ types.UID, _ bool) (types.UID, error) {
			return types.UID(created.Labels[v1beta1.LabelRequestUID]), nil
		},
		Changed: func(update watching.Update[types.UID]) {
			for _, each := range update.Changes {
				w.enqueue(each.Before)
				w.enqueue(each.After)
			}
			if update.Listed {
				w.enqueueAll()
			}
		},
	})
}
