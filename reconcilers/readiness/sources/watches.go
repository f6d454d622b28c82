package sources

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/cache/watching"
)

// NotServedError is returned if the API server does not serve a kind: its definition is not installed.
type NotServedError struct{ Kind Kind }

// Error implements error.
func (e *NotServedError) Error() string {
	return fmt.Sprintf("the cluster does not serve the kind %s", e.Kind)
}

// errNotYet is returned until the first list has arrived.
var errNotYet = errors.New("nothing is known yet")

// Watches watches all kinds. It runs until the context of Start ends.
type Watches struct {
	stores map[Kind]*store
	late   []watching.Late
	served discovery.ServerResourcesInterface
	log    logr.Logger
}

// New returns Watches that have not started. changed is called with the key of each object that is created, deleted or changes its reduced
// form, and with a key without a name if that may be any object of a kind. It must not block.
func New(config *rest.Config, log logr.Logger, populators []Populator, changed func(Key)) (*Watches, error) {
	config = rest.CopyConfig(config)
	// There are few requests, and the API server has limits of its own.
	config.QPS = -1
	whole, err1 := dynamic.NewForConfig(config)
	partial, err2 := metadata.NewForConfig(config)
	served, err3 := discovery.NewDiscoveryClientForConfig(config)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("making the clients of the watches of what templates depend on: %w", err)
	}
	w := &Watches{stores: map[Kind]*store{}, served: served, log: log}
	for kind, how := range kinds(populators) {
		s := newStore(kind, how, changed)
		w.stores[kind] = s
		late := watching.Late{Name: "readiness-" + how.resource.Resource, Resource: how.resource, Into: s, Failed: s.failed}
		if how.reduce == nil {
			late.Example, late.Source = &metav1.PartialObjectMetadata{}, watching.Source(partial.Resource(how.resource), watching.Selector{})
		} else {
			late.Example, late.Source = &unstructured.Unstructured{}, watching.Source(whole.Resource(how.resource), watching.Selector{})
		}
		w.late = append(w.late, late)
	}
	return w, nil
}

// Start runs the watches until ctx ends. The manager calls it on the leader.
func (w *Watches) Start(ctx context.Context) error {
	watching.RunLate(ctx, w.log, w.served, w.late...)
	return nil
}

// Synced reports whether all kinds are synced or cannot be read.
func (w *Watches) Synced() bool {
	for _, s := range w.stores {
		if !s.Synced() {
			return false
		}
	}
	return true
}

// Get returns an object, whether it exists, and an error if that is unknown.
func (w *Watches) Get(key Key) (object Object, found bool, unknown error) {
	s, watched := w.stores[key.Kind]
	if !watched {
		return Object{}, false, &NotWatchedError{key.Kind}
	}
	return s.get(key.Namespace, key.Name)
}

// ResourceOf returns the resource of a watched kind.
func (w *Watches) ResourceOf(kind Kind) (resource schema.GroupVersionResource) {
	if s, watched := w.stores[kind]; watched {
		resource = s.how.resource
	}
	return resource
}

// TypeOf returns the API version and the kind of the objects of a watched kind.
func (w *Watches) TypeOf(kind Kind) metav1.TypeMeta {
	name, _, _ := strings.Cut(string(kind), ".")
	made := metav1.TypeMeta{Kind: name}
	if s, watched := w.stores[kind]; watched {
		made.APIVersion = s.how.resource.GroupVersion().String()
	}
	return made
}
