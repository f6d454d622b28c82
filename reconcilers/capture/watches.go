package capture

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
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
		late := []watching.Late{w.watch(requests, "", &requestStore{wake: w, metadata: map[types.UID]metav1.ObjectMeta{}})}
		for _, each := range []resource{snapshots, dataVolumes, templates} {
			late = append(late, w.watch(each, v1beta1.LabelRequestUID, &madeStore{wake: w, uids: map[string]types.UID{}}))
		}
		go watching.RunLate(ctx, w.log, w.served, late...)
		return nil
	})
}

// watch returns the watch that writes the objects of a kind to a store.
func (w *wake) watch(of resource, selector string, into cache.ReflectorStore) watching.Late {
	client := w.client.Resource(of.GroupVersionResource)
	return watching.Late{
		Name: "capture-" + of.Resource, Resource: of.GroupVersionResource, Example: &metav1.PartialObjectMetadata{}, Into: into,
		Source: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				options.LabelSelector = selector
				return client.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.LabelSelector = selector
				return client.Watch(ctx, options)
			},
		},
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

// requestStore receives the requests. A change of the status alone, which this controller writes, does not enqueue a request: the status
// reports a failed step, and the step would be retried at once instead of at increasing intervals.
type requestStore struct {
	*wake
	// metadata is the part of the requests' metadata that changes independently of the status. Only the reflector uses it.
	metadata map[types.UID]metav1.ObjectMeta
}

var _ cache.ReflectorStore = &requestStore{}

// Add implements cache.ReflectorStore.
func (s *requestStore) Add(object any) error {
	request, err := metadataOf(object)
	if err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: request.Namespace, Name: request.Name}
	s.mutex.Lock()
	s.byUID[request.UID] = key
	s.mutex.Unlock()
	before, found := s.metadata[request.UID]
	s.metadata[request.UID] = beyondStatus(request)
	if !found || !equality.Semantic.DeepEqual(before, s.metadata[request.UID]) {
		s.add(key)
	}
	return nil
}

// beyondStatus returns the relevant metadata that does not change with the status.
func beyondStatus(request *metav1.PartialObjectMetadata) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Generation: request.Generation, DeletionTimestamp: request.DeletionTimestamp,
		Finalizers: request.Finalizers, OwnerReferences: request.OwnerReferences,
	}
}

// Update implements cache.ReflectorStore.
func (s *requestStore) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s *requestStore) Delete(object any) error {
	request, err := metadataOf(object)
	if err != nil {
		return err
	}
	delete(s.metadata, request.UID)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.byUID, request.UID)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *requestStore) Replace(objects []any, _ string) error {
	s.mutex.Lock()
	clear(s.byUID)
	s.mutex.Unlock()
	clear(s.metadata)
	for _, object := range objects {
		if err := s.Add(object); err != nil {
			return err
		}
	}
	return nil
}

// Resync implements cache.ReflectorStore. Requests that wait are enqueued again after a delay.
func (s *requestStore) Resync() error { return nil }

// madeStore receives the objects of one kind that were created for requests.
type madeStore struct {
	*wake
	// uids holds the UIDs of the requests by namespace and name of the objects. Only the reflector uses it.
	uids map[string]types.UID
}

var _ cache.ReflectorStore = &madeStore{}

// Add implements cache.ReflectorStore.
func (s *madeStore) Add(object any) error {
	made, err := metadataOf(object)
	if err != nil {
		return err
	}
	uid := types.UID(made.Labels[v1beta1.LabelRequestUID])
	s.uids[made.Namespace+"/"+made.Name] = uid
	s.enqueue(uid)
	return nil
}

// Update implements cache.ReflectorStore.
func (s *madeStore) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s *madeStore) Delete(object any) error {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return fmt.Errorf("reading the name of what was deleted: %w", err)
	}
	s.enqueue(s.uids[key])
	delete(s.uids, key)
	return nil
}

// Replace implements cache.ReflectorStore. It receives the first list of a kind, and a list after each lost watch.
func (s *madeStore) Replace(objects []any, _ string) error {
	clear(s.uids)
	for _, object := range objects {
		if err := s.Add(object); err != nil {
			return err
		}
	}
	s.enqueueAll()
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *madeStore) Resync() error { return nil }

func metadataOf(object any) (*metav1.PartialObjectMetadata, error) {
	if tombstone, deleted := object.(cache.DeletedFinalStateUnknown); deleted {
		object = tombstone.Obj
	}
	found, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, fmt.Errorf("a watch of captures was given a %T", object)
	}
	return found, nil
}
