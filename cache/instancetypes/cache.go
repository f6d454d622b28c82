package instancetypes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/cache/watching"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// DefaultWaitTimeout is the default timeout of Resolve.
const DefaultWaitTimeout = 300 * time.Millisecond

// Options are the options of a Cache.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	Logger logr.Logger
	// Registerer registers the metrics; if nil, there are none.
	Registerer prometheus.Registerer
	// WithoutRevisions leaves out the ControllerRevisions that stored VMs reference, for callers that resolve only new VMs.
	// Revisions are most of the cache.
	WithoutRevisions bool
	// WaitTimeout is the timeout of waiting for an object that is not in the cache. Default: 300 ms. It must be shorter than the
	// timeout of a webhook.
	WaitTimeout time.Duration
}

// Cache is a watch cache of instance types, preferences and their revisions. It runs
// until the context of Start ends, on every replica. All methods are safe for concurrent
// use.
type Cache struct {
	index       *index
	reflectors  []*cache.Reflector
	log         logr.Logger
	waitTimeout time.Duration
}

// New returns a Cache that has not started. It fails when no client can be made of the
// configuration or the metrics are registered already.
func New(o Options) (*Cache, error) {
	sources, err := newSources(o.Config)
	if err != nil {
		return nil, err
	}
	if o.WithoutRevisions {
		delete(sources, kindRevision)
	}
	c := newCache(o, sources)
	if o.Registerer != nil {
		if err := o.Registerer.Register(&collector{index: c.index}); err != nil {
			return nil, fmt.Errorf("registering instance type cache metrics: %w", err)
		}
	}
	return c, nil
}

func newCache(o Options, sources map[string]cache.ListerWatcher) *Cache {
	c := &Cache{index: newIndex(), log: o.Logger, waitTimeout: o.WaitTimeout}
	if c.waitTimeout == 0 {
		c.waitTimeout = DefaultWaitTimeout
	}
	for _, kind := range kinds {
		if sources[kind] == nil {
			c.index.change(kind, func(target *collection) { target.synced = true })
		}
	}
	for kind, source := range sources {
		into := &store{index: c.index, kind: kind}
		c.reflectors = append(c.reflectors, watching.Reflector("instancetypecache/"+kind, into.watching(source), &unstructured.Unstructured{}, into, c.log))
	}
	return c
}

// Start fills and updates the cache until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	watching.Run(ctx, c.log, c.reflectors...)
	return nil
}

// NeedLeaderElection returns false: every replica has a cache of its own.
func (c *Cache) NeedLeaderElection() bool { return false }

// Synced reports whether the first list of each kind has arrived, or the kind is not served.
func (c *Cache) Synced() bool { return c.index.hasSynced() }

// Changed returns a channel that is closed as soon as an instance type or a preference is added, changed or deleted.
// Revisions are ignored: they never change, and each VirtualMachine adds one.
func (c *Cache) Changed() <-chan struct{} { return c.index.alteration() }

// Resolve implements sizing.Resolver. An object and a VM that references it are often created together, and the watch may be
// slightly behind. If the object is not in the cache, Resolve waits until the timeout.
func (c *Cache) Resolve(ctx context.Context, reference sizing.Reference) (map[string]any, error) {
	object, changed, err := c.index.resolve(reference)
	if err == nil {
		return object, nil
	}
	timer := time.NewTimer(c.waitTimeout)
	defer timer.Stop()
	for {
		select {
		case <-changed:
			if object, changed, err = c.index.resolve(reference); err == nil {
				return object, nil
			}
		case <-timer.C:
			return nil, err
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Cached returns a Resolver that does not wait, for callers that resolve stored VMs.
func (c *Cache) Cached() sizing.Resolver { return cachedResolver{c.index} }

type cachedResolver struct{ index *index }

// Resolve implements sizing.Resolver.
func (r cachedResolver) Resolve(_ context.Context, reference sizing.Reference) (map[string]any, error) {
	object, _, err := r.index.resolve(reference)
	return object, err
}

var (
	errUnsynced = errors.New("the cache of instance types and preferences is not synced; try again in a moment")
	errMissing  = errors.New("it does not exist")
	errRevision = errors.New("it does not exist, or KubeVirt did not make it of an instance type or a preference")
)
