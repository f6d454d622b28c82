package kubevirt

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/defaulting"
)

// Options are the options of a Cache.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	Logger logr.Logger
}

// Cache is a watch cache of the KubeVirt object. It runs until the context of Start ends, on every replica. All methods are
// safe for concurrent use.
type Cache struct {
	client dynamic.Interface
	log    logr.Logger

	mu sync.RWMutex
	// found are the existing KubeVirt objects, by namespace and name. KubeVirt permits only one.
	found map[string]entry
	// synced is true once the first list has arrived, missing while the kind is not served.
	synced, missing bool
	// changed is closed, and replaced, on every change.
	changed chan struct{}
}

// entry is one KubeVirt object.
type entry struct {
	cluster   defaulting.Cluster
	reference corev1.ObjectReference
}

// New returns a Cache that has not started. It fails when no client can be made of the
// configuration.
func New(o Options) (*Cache, error) {
	client, err := dynamic.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client of KubeVirt's configuration: %w", err)
	}
	return &Cache{client: client, log: o.Logger, found: map[string]entry{}, changed: make(chan struct{})}, nil
}

// Start fills and updates the cache until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	resource := c.client.Resource(kubevirtv1.SchemeGroupVersion.WithResource("kubevirts"))
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := resource.List(ctx, options)
			if apierrors.IsNotFound(err) {
				c.change(func() { c.missing, c.synced, c.found = true, false, map[string]entry{} })
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return resource.Watch(ctx, options)
		},
	}
	watching.Run(ctx, c.log, watching.Reflector("kubevirtconfig", source, &unstructured.Unstructured{}, store{c}, c.log))
	return nil
}

// NeedLeaderElection returns false: every replica has a cache of its own.
func (c *Cache) NeedLeaderElection() bool { return false }

// Synced reports whether the first list has arrived, or the kind is not served.
func (c *Cache) Synced() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.synced || c.missing
}

// Cluster returns the settings that defaults depend on. Without a KubeVirt object it is empty. It must not be modified.
func (c *Cache) Cluster() defaulting.Cluster {
	return c.one().cluster
}

// Object returns a reference to the KubeVirt object; its name is empty if there is none.
func (c *Cache) Object() corev1.ObjectReference {
	return c.one().reference
}

// Changed returns a channel that is closed as soon as a KubeVirt object is added, changed or deleted.
func (c *Cache) Changed() <-chan struct{} {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.changed
}

// one returns the KubeVirt object, the first by namespace and name if there are several.
func (c *Cache) one() entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	first, found := "", entry{}
	for key, e := range c.found {
		if first == "" || key < first {
			first, found = key, e
		}
	}
	return found
}

func (c *Cache) change(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	close(c.changed)
	c.changed = make(chan struct{})
}

// store stores the objects of the reflector.
type store struct{ cache *Cache }

var _ cache.ReflectorStore = store{}

func entryOf(object any) (string, entry, error) {
	o, ok := object.(*unstructured.Unstructured)
	if !ok {
		return "", entry{}, fmt.Errorf("the cache of KubeVirt's configuration was given a %T", object)
	}
	key := o.GetNamespace() + "/" + o.GetName()
	kubevirt := &kubevirtv1.KubeVirt{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, kubevirt); err != nil {
		return "", entry{}, fmt.Errorf("reading KubeVirt %s: %w", key, err)
	}
	return key, entry{cluster: read(kubevirt), reference: corev1.ObjectReference{
		APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
	}}, nil
}

// Add implements cache.ReflectorStore.
func (s store) Add(object any) error {
	key, e, err := entryOf(object)
	if err != nil {
		return err
	}
	s.cache.change(func() { s.cache.found[key] = e })
	return nil
}

// Update implements cache.ReflectorStore.
func (s store) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s store) Delete(object any) error {
	key, _, err := entryOf(object)
	if err != nil {
		return err
	}
	s.cache.change(func() { delete(s.cache.found, key) })
	return nil
}

// Replace implements cache.ReflectorStore: the first list, and each one after a watch was
// lost for good.
func (s store) Replace(objects []any, _ string) error {
	found := map[string]entry{}
	for _, object := range objects {
		key, e, err := entryOf(object)
		if err != nil {
			return err
		}
		found[key] = e
	}
	s.cache.change(func() { s.cache.found, s.cache.synced, s.cache.missing = found, true, false })
	return nil
}

// Resync implements cache.ReflectorStore.
func (s store) Resync() error { return nil }
