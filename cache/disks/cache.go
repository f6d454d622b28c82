package disks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/cache/watching"
)

// Options are the options of a Cache.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	Logger logr.Logger
}

// Cache stores the names of DataVolumes and claims. It runs until the context of Start ends, on every replica. All methods are safe for
// concurrent use.
type Cache struct {
	dataVolumes, claims *index
	watched             []watching.Late
	served              discovery.ServerResourcesInterface
	log                 logr.Logger

	mutex     sync.Mutex
	listeners []func(deleted types.NamespacedName)
}

type index = watching.Index[*metav1.PartialObjectMetadata, struct{}]

// New returns a Cache that has not started. It fails when no client can be made of the configuration.
func New(o Options) (*Cache, error) {
	client, err1 := metadata.NewForConfig(o.Config)
	served, err2 := discovery.NewDiscoveryClientForConfig(o.Config)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("making the clients of the names of disks: %w", err)
	}
	c := newCache()
	c.served, c.log = served, o.Logger
	for _, kind := range []struct {
		resource schema.GroupVersionResource
		into     *index
	}{
		{schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}, c.dataVolumes},
		{corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), c.claims},
	} {
		c.watched = append(c.watched, watching.Late{
			Name: "disks-" + kind.resource.Resource, Resource: kind.resource, Into: kind.into, Failed: kind.into.FailIfNotServed,
			Example: &metav1.PartialObjectMetadata{}, Source: watching.Source(client.Resource(kind.resource), watching.Selector{}),
		})
	}
	return c, nil
}

func newCache() *Cache {
	c := &Cache{}
	c.claims, c.dataVolumes = newIndex("PersistentVolumeClaims", nil), newIndex("DataVolumes", c.notify)
	return c
}

func newIndex(kind string, changed func(watching.Update[struct{}])) *index {
	return watching.NewIndex(watching.Options[*metav1.PartialObjectMetadata, struct{}]{
		Kind:    kind,
		Convert: func(*metav1.PartialObjectMetadata, struct{}, bool) (struct{}, error) { return struct{}{}, nil },
		Equal:   func(struct{}, struct{}) bool { return true },
		Changed: changed,
	})
}

func (c *Cache) notify(update watching.Update[struct{}]) {
	c.mutex.Lock()
	listeners := c.listeners
	c.mutex.Unlock()
	for _, each := range update.Changes {
		for _, listener := range listeners {
			if !each.Exists {
				listener(each.NamespacedName)
			}
		}
	}
}

// Start fills and updates the cache until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	watching.RunLate(ctx, c.log, c.served, c.watched...)
	return nil
}

// NeedLeaderElection returns false: every replica has a cache of its own.
func (c *Cache) NeedLeaderElection() bool { return false }

// Synced reports whether the first lists have arrived, or a kind is not served.
func (c *Cache) Synced() bool { return c.dataVolumes.Synced() && c.claims.Synced() }

// DataVolume reports whether a DataVolume exists.
func (c *Cache) DataVolume(namespace, name string) bool {
	return exists(c.dataVolumes, namespace, name)
}

// Claim reports whether a claim exists.
func (c *Cache) Claim(namespace, name string) bool { return exists(c.claims, namespace, name) }

func exists(x *index, namespace, name string) bool {
	_, found := x.Get(namespace, name)
	return found
}

// Listen calls a function for every DataVolume that is deleted from now on. It is called with the cache locked: it must return quickly, and must
// not call the cache.
func (c *Cache) Listen(deleted func(types.NamespacedName)) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.listeners = append(slices.Clone(c.listeners), deleted)
}
