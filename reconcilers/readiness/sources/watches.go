package sources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/watching"
)

// NotServedError says that the API server does not know a kind: what defines it is not installed.
type NotServedError struct{ Kind Kind }

// Error implements error.
func (e *NotServedError) Error() string {
	return fmt.Sprintf("the cluster does not know the kind %s", e.Kind)
}

// errNotYet says that the first list has not arrived.
var errNotYet = errors.New("nothing is known yet")

// Watches watches every kind. It runs until the context of Start ends.
type Watches struct {
	stores  map[Kind]*store
	running []run
	served  discovery.ServerResourcesInterface
	log     logr.Logger
}

// run is what is run for one kind.
type run struct {
	store     *store
	resource  schema.GroupVersionResource
	reflector *cache.Reflector
}

// servedInterval is how often the API server is asked for a kind that it does not serve.
const servedInterval = 5 * time.Second

// New returns Watches that have not started. changed is called with the key of each object that comes, goes or means something else
// than before, and with a key without a name when that may be any object of a kind. It must be quick.
func New(config *rest.Config, log logr.Logger, changed func(Key)) (*Watches, error) {
	config = rest.CopyConfig(config)
	// A handful of lists and watches; the API server has limits of its own.
	config.QPS = -1
	whole, err1 := dynamic.NewForConfig(config)
	partial, err2 := metadata.NewForConfig(config)
	served, err3 := discovery.NewDiscoveryClientForConfig(config)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("making the clients of the watches of what templates depend on: %w", err)
	}
	w := &Watches{stores: map[Kind]*store{}, served: served, log: log}
	for kind, how := range kinds() {
		s := newStore(kind, how.reduce, changed)
		w.stores[kind] = s
		var example runtime.Object = &unstructured.Unstructured{}
		from := s.asking(
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return whole.Resource(how.resource).List(ctx, o)
			},
			func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return whole.Resource(how.resource).Watch(ctx, o)
			})
		if how.reduce == nil {
			example = &metav1.PartialObjectMetadata{}
			from = s.asking(
				func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
					return partial.Resource(how.resource).List(ctx, o)
				},
				func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
					return partial.Resource(how.resource).Watch(ctx, o)
				})
		}
		w.running = append(w.running, run{s, how.resource, watching.Reflector("readiness-"+how.resource.Resource, from, example, s, log)})
	}
	return w, nil
}

// Start fills the watches and keeps them current until ctx ends. The manager calls it on the leader.
func (w *Watches) Start(ctx context.Context) error {
	var running sync.WaitGroup
	for _, one := range w.running {
		running.Go(func() {
			if w.awaitServed(ctx, one) {
				watching.Run(ctx, w.log, one.reflector)
			}
		})
	}
	running.Wait()
	return nil
}

// awaitServed returns true when the API server serves a kind, false when ctx ends first. A reflector would ask as well, and log each
// time that there is nothing; but many clusters never have all kinds.
func (w *Watches) awaitServed(ctx context.Context, one run) bool {
	tick := time.NewTicker(servedInterval)
	defer tick.Stop()
	for {
		listed, err := w.served.ServerResourcesForGroupVersion(one.resource.GroupVersion().String())
		switch {
		case err == nil && slices.ContainsFunc(listed.APIResources, func(r metav1.APIResource) bool { return r.Name == one.resource.Resource }):
			return true
		case err == nil || apierrors.IsNotFound(err):
			one.store.failed(apierrors.NewNotFound(one.resource.GroupResource(), ""))
		default:
			w.log.Info("asking whether a kind is served failed", "resource", one.resource.Resource, "reason", err.Error())
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// Settled says whether of every kind all objects are known, or why they cannot be.
func (w *Watches) Settled() bool {
	for _, s := range w.stores {
		if !s.settled() {
			return false
		}
	}
	return true
}

// Get returns an object, whether there is one, and why nobody knows when nobody does.
func (w *Watches) Get(key Key) (object Object, found bool, unknown error) {
	s, watched := w.stores[key.Kind]
	if !watched {
		return Object{}, false, fmt.Errorf("the kind %s is none that is watched", key.Kind)
	}
	return s.get(types.NamespacedName{Namespace: key.Namespace, Name: key.Name})
}
