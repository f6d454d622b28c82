package policydata

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
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
}

// Cache is a watch cache of ConfigMaps. It runs until the context of Start ends, on every replica. All methods are safe for concurrent use.
type Cache struct {
	namespace  string
	log        logr.Logger
	reflector  *cache.Reflector
	configMaps *watching.Index[*corev1.ConfigMap, map[string]*text]
	changed    await.Signal
}

// New returns a Cache that has not started. It fails when no client can be made of the configuration.
func New(o Options) (*Cache, error) {
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client of the data of policies: %w", err)
	}
	return newCache(o, cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", o.Namespace, fields.Everything())), nil
}

func newCache(o Options, source cache.ListerWatcher) *Cache {
	c := &Cache{namespace: o.Namespace, log: o.Logger}
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
	c.reflector = watching.Reflector("policy-data", source, &corev1.ConfigMap{}, c.configMaps, c.log)
	return c
}

// Start fills and updates the cache until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	watching.Run(ctx, c.log, c.reflector)
	return nil
}

// NeedLeaderElection returns false: every replica has a cache of its own.
func (c *Cache) NeedLeaderElection() bool { return false }

// Synced reports whether the first list has arrived.
func (c *Cache) Synced() bool { return c.configMaps.Synced() }

// Changed returns a channel that is closed by the next change of a ConfigMap, and by the first list.
func (c *Cache) Changed() <-chan struct{} { return c.changed.Changed() }

// Bind returns the present values of references, in their order.
func (c *Cache) Bind(references []rego.Reference) []rego.Binding {
	bindings := make([]rego.Binding, len(references))
	for i, reference := range references {
		bindings[i] = rego.Binding{Name: reference.Name}
		value, err := c.value(reference)
		if err != nil {
			bindings[i].Missing = err.Error()
			continue
		}
		bindings[i].Value = value
	}
	return bindings
}

func (c *Cache) value(reference rego.Reference) (*rego.Value, error) {
	if !c.Synced() {
		return nil, fmt.Errorf("the ConfigMaps of namespace %s have not been read yet; the log of the manager has the reason", c.namespace)
	}
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
