package macaddresses

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/cache/watching"
)

// pageSize is the number of VirtualMachines that are decoded at a time.
const pageSize = 250

// Options are the options of a Cache.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	Logger logr.Logger
}

// Cache stores the addresses of VMs and the selector of the MAC pool manager. It runs until the context of Start ends, on
// every replica. All methods are safe for concurrent use.
type Cache struct {
	index      *index
	pool       *pool
	log        logr.Logger
	reflectors []*cache.Reflector
	// listed is true once the first list of VMs has arrived, missing if their kind is not served.
	listed, missing atomic.Bool
}

// New returns a Cache that has not started. It fails when no client can be made of the
// configuration.
func New(o Options) (*Cache, error) {
	client, err := dynamic.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client of MAC addresses: %w", err)
	}
	c := &Cache{index: newIndex(), pool: &pool{}, log: o.Logger}
	vms := client.Resource(kubevirtv1.SchemeGroupVersion.WithResource("virtualmachines"))
	c.reflectors = []*cache.Reflector{
		watching.Reflector("macaddresses", c.source(vms), &metav1.PartialObjectMetadata{}, store{c}, c.log),
		watching.Reflector("macaddresses/pool", poolSource(client), &unstructured.Unstructured{}, c.pool, c.log),
	}
	return c, nil
}

// source lists and watches VMs, reduced to their addresses.
func (c *Cache) source(vms dynamic.ResourceInterface) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			all := &metav1.PartialObjectMetadataList{}
			for options := (metav1.ListOptions{Limit: pageSize}); ; {
				page, err := vms.List(ctx, options)
				if apierrors.IsNotFound(err) {
					c.missing.Store(true)
					c.index.replace(nil)
				}
				if err != nil {
					return nil, err
				}
				for i := range page.Items {
					all.Items = append(all.Items, *reduced(&page.Items[i]))
				}
				all.ResourceVersion = page.GetResourceVersion()
				if options.Continue = page.GetContinue(); options.Continue == "" {
					return all, nil
				}
			}
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := vms.Watch(ctx, options)
			if err != nil {
				return nil, err
			}
			return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
				if object, ok := event.Object.(*unstructured.Unstructured); ok {
					event.Object = reduced(object)
				}
				return event, true
			}), nil
		},
	}
}

// Start fills and updates the cache until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	watching.Run(ctx, c.log, c.reflectors...)
	return nil
}

// NeedLeaderElection returns false: every replica has a cache of its own.
func (c *Cache) NeedLeaderElection() bool { return false }

// Synced reports whether the first lists have arrived, or the kind VirtualMachine is not served.
func (c *Cache) Synced() bool { return (c.listed.Load() || c.missing.Load()) && c.pool.synced() }

// Taken reports whether another VirtualMachine of the namespace has the address.
func (c *Cache) Taken(namespace, name, address string) bool {
	return c.index.taken(types.NamespacedName{Namespace: namespace, Name: name}, address)
}

// Pooled reports whether a MAC pool manager assigns addresses to the VirtualMachines of a namespace with these labels.
func (c *Cache) Pooled(labels map[string]string) bool { return c.pool.covers(labels) }

// addressPrefix is the prefix of the annotation keys that hold the addresses of a reduced object.
const addressPrefix = "macaddresses/"

// initialEventsEnd marks the bookmark that ends the first part of a watch.
const initialEventsEnd = metav1.InitialEventsAnnotationKey

// reduced returns the stored part of a VM.
func reduced(object *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	kept := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), ResourceVersion: object.GetResourceVersion(), Annotations: map[string]string{},
	}}
	if value, found := object.GetAnnotations()[initialEventsEnd]; found {
		kept.Annotations[initialEventsEnd] = value
	}
	interfaces, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "template", "spec", "domain", "devices", "interfaces")
	items, _ := interfaces.([]any)
	for i, item := range items {
		nic, _ := item.(map[string]any)
		if address, _ := nic["macAddress"].(string); address != "" {
			kept.Annotations[fmt.Sprint(addressPrefix, i)] = address
		}
	}
	return kept
}
