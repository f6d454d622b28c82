package policydata

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/await"
	"github.com/vmstencil/stencil/rego"
)

// Options are the options of a Cache.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	Logger logr.Logger
	// Namespace is the namespace of the ConfigMaps.
	Namespace string
	// Sizes has the sizes of instance types.
	Sizes Sizes
}

// Cache is a watch cache of ConfigMaps and, once a policy reads them, of VirtualMachines and ResourceQuotas. It runs until the context of Start ends, on every replica. All methods are safe for concurrent use.
type Cache struct {
	namespace  string
	log        logr.Logger
	reflector  *cache.Reflector
	configMaps *watching.Index[*corev1.ConfigMap, map[string]*text]
	vms        *virtualMachines
	quotas     *quotas
	changed    await.Signal
}

// sources list and watch the objects.
type sources struct {
	configMaps, virtualMachines, quotas cache.ListerWatcher
	served                              discovery.ServerResourcesInterface
}

// New returns a Cache that has not started. It fails when no client can be made of the configuration.
func New(o Options) (*Cache, error) {
	client, err1 := kubernetes.NewForConfig(o.Config)
	objects, err2 := dynamic.NewForConfig(o.Config)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("making the clients of the data of policies: %w", err)
	}
	core := client.CoreV1().RESTClient()
	return newCache(o, sources{
		configMaps:      cache.NewListWatchFromClient(core, "configmaps", o.Namespace, fields.Everything()),
		virtualMachines: watching.Reduced(objects.Resource(virtualMachinesResource), watching.Selector{}, reduce),
		quotas:          cache.NewListWatchFromClient(core, "resourcequotas", "", fields.Everything()),
		served:          client.Discovery(),
	}), nil
}

func newCache(o Options, from sources) *Cache {
	c := &Cache{namespace: o.Namespace, log: o.Logger}
	c.vms = newVirtualMachines(from.virtualMachines, from.served, o.Sizes, c.changed.Send)
	c.quotas = newQuotas(from.quotas, c.log, c.changed.Send)
	c.configMaps = watching.NewIndex(watching.Options[*corev1.ConfigMap, map[string]*text]{
		Kind: "ConfigMaps",
		Convert: func(configMap *corev1.ConfigMap, _ map[string]*text, _ bool) (map[string]*text, error) {
			texts := make(map[string]*text, len(configMap.Data))
			for key, written := range configMap.Data {
				texts[key] = newText(written)
			}
			return texts, nil
		},
		Changed: func(watching.Update[map[string]*text]) { c.changed.Send() },
	})
	c.reflector = watching.Reflector("policy-data", from.configMaps, &corev1.ConfigMap{}, c.configMaps, c.log)
	return c
}

// Start fills and updates the cache until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { c.vms.run(ctx, c.log) })
	running.Go(func() { c.quotas.run(ctx, c.log) })
	watching.Run(ctx, c.log, c.reflector)
	running.Wait()
	return nil
}

// NeedLeaderElection returns false: every replica has a cache of its own.
func (c *Cache) NeedLeaderElection() bool { return false }

// Synced reports whether the first list of ConfigMaps has arrived.
func (c *Cache) Synced() bool { return c.configMaps.Synced() }

// Ready reports whether everything has been read that the values of references are made of. It is read once Bind was called.
func (c *Cache) Ready(references []rego.Reference) bool {
	for _, reference := range references {
		if c.unread(reference) != "" {
			return false
		}
	}
	return true
}

// unread returns which objects have not been read that a reference needs; empty if they have.
func (c *Cache) unread(reference rego.Reference) string {
	switch {
	case reference.VirtualMachines != nil:
		if !c.vms.index.Synced() {
			return "VirtualMachines"
		}
	case reference.ResourceQuota != "":
		if !c.quotas.index.Synced() {
			return "ResourceQuotas"
		}
	case !c.configMaps.Synced():
		return "ConfigMaps of namespace " + c.namespace
	}
	return ""
}

// Changed returns a channel that is closed by the next change of a ConfigMap, and by each first list. Values that depend on the object that is evaluated
// are not bound, so that their changes change nothing.
func (c *Cache) Changed() <-chan struct{} { return c.changed.Changed() }

// Bind returns the present values of references, in their order. Values that depend on the object that is evaluated have a source.
func (c *Cache) Bind(references []rego.Reference) []rego.Binding {
	bindings := make([]rego.Binding, len(references))
	for i, reference := range references {
		bound, err := c.bind(reference)
		if err != nil {
			bound.Missing = err.Error()
		}
		bound.Name = reference.Name
		bindings[i] = bound
	}
	return bindings
}

func (c *Cache) bind(reference rego.Reference) (bound rego.Binding, err error) {
	switch {
	case reference.VirtualMachines != nil:
		c.vms.needed.send()
	case reference.ResourceQuota != "":
		c.quotas.needed.send()
	}
	if unread := c.unread(reference); unread != "" {
		return bound, fmt.Errorf("the %s have not been read yet; the log of the manager has the reason", unread)
	}
	switch {
	case reference.VirtualMachines != nil:
		counts, err := c.vms.counts(reference.VirtualMachines)
		if err != nil {
			return bound, err
		}
		bound.Source = counts
	case reference.ResourceQuota != "":
		bound.Source = namedQuota{c.quotas, reference.ResourceQuota}
	default:
		bound.Value, err = c.value(reference)
	}
	return bound, err
}

func (c *Cache) value(reference rego.Reference) (*rego.Value, error) {
	texts, found := c.configMaps.Get(c.namespace, reference.ConfigMap)
	if !found {
		return nil, fmt.Errorf("ConfigMap %s/%s does not exist; create it with the key %s", c.namespace, reference.ConfigMap, reference.Key)
	}
	one, found := texts[reference.Key]
	if !found {
		return nil, fmt.Errorf("ConfigMap %s/%s has no key %s; add it to its data", c.namespace, reference.ConfigMap, reference.Key)
	}
	value, err := one.read()
	if err != nil {
		return nil, fmt.Errorf("key %s of ConfigMap %s/%s %w", reference.Key, c.namespace, reference.ConfigMap, err)
	}
	return value, nil
}
