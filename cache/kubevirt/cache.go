package kubevirt

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/internal/await"
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
	// found are the existing KubeVirt objects. KubeVirt permits only one.
	found *watching.Index[*unstructured.Unstructured, entry]
	// changed is sent on every change.
	changed await.Signal
	client  dynamic.Interface
	served  discovery.ServerResourcesInterface
	log     logr.Logger
}

// entry is one KubeVirt object.
type entry struct {
	cluster   defaulting.Cluster
	reference corev1.ObjectReference
}

// New returns a Cache that has not started. It fails when no client can be made of the
// configuration.
func New(o Options) (*Cache, error) {
	client, err1 := dynamic.NewForConfig(o.Config)
	served, err2 := discovery.NewDiscoveryClientForConfig(o.Config)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("making the clients of KubeVirt's configuration: %w", err)
	}
	c := newCache()
	c.client, c.served, c.log = client, served, o.Logger
	return c, nil
}

func newCache() *Cache {
	c := &Cache{}
	c.found = watching.NewIndex(watching.Options[*unstructured.Unstructured, entry]{
		Kind: "KubeVirts", Convert: convert, Changed: func(watching.Update[entry]) { c.changed.Send() },
	})
	return c
}

func convert(o *unstructured.Unstructured, _ entry, _ bool) (entry, error) {
	kubevirt := &kubevirtv1.KubeVirt{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, kubevirt); err != nil {
		return entry{}, fmt.Errorf("reading KubeVirt %s/%s: %w", o.GetNamespace(), o.GetName(), err)
	}
	return entry{cluster: read(kubevirt), reference: corev1.ObjectReference{
		APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
	}}, nil
}

// Start fills and updates the cache until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	resource := kubevirtv1.SchemeGroupVersion.WithResource("kubevirts")
	watching.RunLate(ctx, c.log, c.served, watching.Late{
		Name: "kubevirtconfig", Resource: resource, Source: watching.Source(c.client.Resource(resource), watching.Selector{}),
		Example: &unstructured.Unstructured{}, Into: c.found, Failed: c.found.FailIfNotServed,
	})
	return nil
}

// NeedLeaderElection returns false: every replica has a cache of its own.
func (c *Cache) NeedLeaderElection() bool { return false }

// Synced reports whether the first list has arrived, or the kind is not served.
func (c *Cache) Synced() bool { return c.found.Synced() }

// Cluster returns the settings that defaults depend on. Without a KubeVirt object it is empty. It must not be modified.
func (c *Cache) Cluster() defaulting.Cluster {
	return c.one().cluster
}

// Object returns a reference to the KubeVirt object; its name is empty if there is none.
func (c *Cache) Object() corev1.ObjectReference {
	return c.one().reference
}

// Changed returns a channel that is closed as soon as a KubeVirt object is added, changed or deleted.
func (c *Cache) Changed() <-chan struct{} { return c.changed.Changed() }

// one returns the KubeVirt object, the first by namespace and name if there are several.
func (c *Cache) one() entry {
	first, found := "", entry{}
	c.found.Range(func(name types.NamespacedName, e entry) bool {
		if key := name.String(); first == "" || key < first {
			first, found = key, e
		}
		return true
	})
	return found
}
