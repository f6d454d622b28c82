package templates

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/await"
	"github.com/vmstencil/stencil/internal/intern"
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
	index     *watching.Index[*v1beta1.VirtualMachineTemplate, *Template]
	reflector *cache.Reflector
	log       logr.Logger
	texts     intern.Texts
	// written is sent after every write of a template, changed when one is added or deleted, or its content, labels or
	// annotations change.
	written, changed await.Signal

	mutex     sync.Mutex
	listeners []Listener
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
		if err := o.Registerer.Register(&collector{cache: c}); err != nil {
			return nil, fmt.Errorf("registering template cache metrics: %w", err)
		}
	}
	return c, nil
}

func newCache(watch cache.ListerWatcher, log logr.Logger) *Cache {
	c := &Cache{log: log}
	c.index = watching.NewIndex(watching.Options[*v1beta1.VirtualMachineTemplate, *Template]{
		Kind: "VirtualMachineTemplates", Convert: c.convert, Changed: c.notify,
	})
	c.reflector = watching.Reflector("templatecache", watch, &v1beta1.VirtualMachineTemplate{}, c.index, log)
	return c
}

// convert keeps the content that is stored of this generation. It compiles other content, but that of the first list.
func (c *Cache) convert(object *v1beta1.VirtualMachineTemplate, stored *Template, found bool) (*Template, error) {
	switch {
	case found && stored.UID == object.UID && stored.Generation == object.Generation:
		return stored.withMetadataOf(object, &c.texts), nil
	case !c.Synced():
		return read(object, &c.texts), nil
	default:
		t := read(object, &c.texts)
		t.content.compile()
		return t, nil
	}
}

func (c *Cache) notify(update watching.Update[*Template]) {
	changed := update.First
	c.mutex.Lock()
	listeners := c.listeners
	c.mutex.Unlock()
	for _, each := range update.Changes {
		changed = changed || each.Existed != each.Exists || each.Before.differs(each.After)
		for _, listener := range listeners {
			listener(each.NamespacedName, each.After)
		}
	}
	c.written.Send()
	if changed {
		c.changed.Send()
	}
}

// Start fills and updates the cache until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	var compiling sync.WaitGroup
	defer compiling.Wait()
	compiling.Go(func() { c.compileFirst(ctx) })
	watching.Run(ctx, c.log, c.reflector)
	return nil
}

// compileFirst compiles the templates of the first list once it has arrived: the cache is synced earlier than if each template were compiled
// as it arrives. A template that is needed earlier is compiled by its first user.
func (c *Cache) compileFirst(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), c.Synced) {
		return
	}
	for _, t := range c.List() {
		if ctx.Err() != nil {
			return
		}
		t.content.compile()
	}
}

// NeedLeaderElection returns false: every replica has a cache of its own.
func (c *Cache) NeedLeaderElection() bool { return false }

// Synced reports whether the first list has arrived.
func (c *Cache) Synced() bool { return c.index.Synced() }

// Get returns the template of that namespace and name, or nil if it is not in the cache.
func (c *Cache) Get(namespace, name string) *Template {
	t, _ := c.index.Get(namespace, name)
	return t
}

// List returns all templates, in no order.
func (c *Cache) List() []*Template { return c.index.List() }

// Len returns the number of templates.
func (c *Cache) Len() int { return c.index.Len() }

// Changed returns a channel that is closed as soon as a template is added or deleted, or its content, labels or annotations
// change.
func (c *Cache) Changed() <-chan struct{} { return c.changed.Changed() }

// Listener is called with each template that is added or written, status included. t is nil after a deletion. It is called
// with the cache locked: it must return quickly, and must not call the cache.
type Listener func(name types.NamespacedName, t *Template)

// Listen calls a listener for every cached template, and for every change from now on.
func (c *Cache) Listen(listener Listener) {
	c.mutex.Lock()
	c.listeners = append(slices.Clone(c.listeners), listener)
	c.mutex.Unlock()
	// A change since then is reported before, and no change during the loop.
	c.index.Range(func(name types.NamespacedName, t *Template) bool {
		listener(name, t)
		return true
	})
}

// Wait is Get with a timeout: if the template is not in the cache, Wait waits until it arrives, ctx ends, or the timeout
// expires, and returns nil in the last two cases. A template and a VM that references it are often created by one `kubectl
// apply`, milliseconds apart, and the watch may be slightly behind.
func (c *Cache) Wait(ctx context.Context, namespace, name string, timeout time.Duration) *Template {
	var t *Template
	await.Until(ctx, timeout, &c.written, func() bool {
		t = c.Get(namespace, name)
		return t != nil
	})
	return t
}
