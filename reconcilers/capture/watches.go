package capture

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/watching"
)

// wake tells which requests to look at. It watches the requests, and by the label with the UID of a request what was made for one:
// metadata only, and no more of that is kept than names. A kind that the API server does not know yet is tried again every few
// seconds, and everything is looked at when it has come.
type wake struct {
	client metadata.Interface
	log    logr.Logger

	mutex sync.Mutex
	// byUID are the requests that there are.
	byUID map[types.UID]types.NamespacedName
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newWake(config *rest.Config, log logr.Logger) (*wake, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client that watches captures: %w", err)
	}
	return &wake{client: client, log: log, byUID: map[types.UID]types.NamespacedName{}}, nil
}

// source starts the watches together with a controller.
func (w *wake) source() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.queue = queue
		reflectors := []*cache.Reflector{w.reflector(requests, "", &requestStore{w})}
		for _, each := range []resource{snapshots, dataVolumes, templates} {
			reflectors = append(reflectors, w.reflector(each, v1beta1.LabelRequestUID, &madeStore{wake: w, known: map[string]types.UID{}}))
		}
		go watching.Run(ctx, w.log, reflectors...)
		return nil
	})
}

func (w *wake) reflector(of resource, selector string, into cache.ReflectorStore) *cache.Reflector {
	client := w.client.Resource(of.GroupVersionResource)
	lister := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			return client.Watch(ctx, options)
		},
	}
	return watching.Reflector("capture-"+of.Resource, lister, &metav1.PartialObjectMetadata{}, into, w.log)
}

func (w *wake) add(key types.NamespacedName) { w.queue.Add(reconcile.Request{NamespacedName: key}) }

// concern looks at the request of that UID, if there is one.
func (w *wake) concern(uid types.UID) {
	w.mutex.Lock()
	key, found := w.byUID[uid]
	w.mutex.Unlock()
	if found {
		w.add(key)
	}
}

// everything looks at all requests.
func (w *wake) everything() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, key := range w.byUID {
		w.add(key)
	}
}

// requestStore receives the requests.
type requestStore struct{ *wake }

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
	s.add(key)
	return nil
}

// Update implements cache.ReflectorStore.
func (s *requestStore) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s *requestStore) Delete(object any) error {
	request, err := metadataOf(object)
	if err != nil {
		return err
	}
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
	for _, object := range objects {
		if err := s.Add(object); err != nil {
			return err
		}
	}
	return nil
}

// Resync implements cache.ReflectorStore; requests that wait look again by themselves.
func (s *requestStore) Resync() error { return nil }

// madeStore receives what was made for requests, of one kind.
type madeStore struct {
	*wake
	// known are the requests for which the objects were made, by namespace and name. Only the reflector uses it.
	known map[string]types.UID
}

var _ cache.ReflectorStore = &madeStore{}

// Add implements cache.ReflectorStore.
func (s *madeStore) Add(object any) error {
	made, err := metadataOf(object)
	if err != nil {
		return err
	}
	uid := types.UID(made.Labels[v1beta1.LabelRequestUID])
	s.known[made.Namespace+"/"+made.Name] = uid
	s.concern(uid)
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
	s.concern(s.known[key])
	delete(s.known, key)
	return nil
}

// Replace implements cache.ReflectorStore: the first list, when the kind has come, and each one after a watch was lost for good.
func (s *madeStore) Replace(objects []any, _ string) error {
	clear(s.known)
	for _, object := range objects {
		if err := s.Add(object); err != nil {
			return err
		}
	}
	s.everything()
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
