package templates

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cache/watching"
)

// Options are the options of a Cache.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	Logger logr.Logger
	// Registerer registers the metrics; if nil, there are none.
	Registerer prometheus.Registerer
}

// Cache is a watch cache of compiled templates. It runs until the context of
// Start ends, on every replica. All methods are safe for concurrent use.
type Cache struct {
	store     *store
	reflector *cache.Reflector
	log       logr.Logger
}

// New returns a Cache that has not started. It fails when no client can be made
// of the configuration or the metrics are registered already.
func New(o Options) (*Cache, error) {
	watch, err := watching.Resource(o.Config, v1beta1.GroupVersion, v1beta1.AddToScheme, "virtualmachinetemplates")
	if err != nil {
		return nil, fmt.Errorf("making the client of the template cache: %w", err)
	}
	c := newCache(watch, o.Logger)
	if o.Registerer != nil {
		if err := o.Registerer.Register(&collector{store: c.store}); err != nil {
			return nil, fmt.Errorf("registering template cache metrics: %w", err)
		}
	}
	return c, nil
}

func newCache(watch cache.ListerWatcher, log logr.Logger) *Cache {
	s := newStore()
	return &Cache{
		store:     s,
		log:       log,
		reflector: watching.Reflector("templatecache", watch, &v1beta1.VirtualMachineTemplate{}, s, log),
	}
}

// Start fills and updates the cache until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	watching.Run(ctx, c.log, c.reflector)
	return nil
}

// NeedLeaderElection returns false: every replica has a cache of its own.
func (c *Cache) NeedLeaderElection() bool { return false }

// Synced reports whether the first list has arrived and is compiled.
func (c *Cache) Synced() bool { return c.store.hasSynced() }

// Get returns the template of that namespace and name, or nil if it is not in the cache.
func (c *Cache) Get(namespace, name string) *Template {
	t, _ := c.store.get(types.NamespacedName{Namespace: namespace, Name: name})
	return t
}

// List returns all templates, in no order.
func (c *Cache) List() []*Template { return c.store.list() }

// Changed returns a channel that is closed as soon as a template is added or deleted, or its content, labels or annotations
// change.
func (c *Cache) Changed() <-chan struct{} { return c.store.alteration() }

// Listener is called with each template that is added or written, status included. t is nil after a deletion. It is called
// with the cache locked: it must return quickly, and must not call the cache.
type Listener func(name types.NamespacedName, t *Template)

// Listen calls a listener for every cached template, and for every change from now on.
func (c *Cache) Listen(listener Listener) { c.store.listen(listener) }

// Wait is Get with a timeout: if the template is not in the cache, Wait waits until it arrives, ctx ends, or the timeout
// expires, and returns nil in the last two cases. A template and a VM that references it are often created by one `kubectl
// apply`, milliseconds apart, and the watch may be slightly behind.
func (c *Cache) Wait(ctx context.Context, namespace, name string, timeout time.Duration) *Template {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	t, changed := c.store.get(key)
	if t != nil {
		return t
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		select {
		case <-changed:
			if t, changed = c.store.get(key); t != nil {
				return t
			}
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}
