package exceptions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/await"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
)

// Options are the options of a Cache.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	Logger logr.Logger
	// Registerer registers the metrics; if nil, there are none.
	Registerer prometheus.Registerer
	// Clock determines for metrics which exceptions have ended. Default: the real clock.
	Clock clock.PassiveClock
}

// Cache is a watch cache of PolicyExceptions. It runs until the context of Start ends, on every replica. All methods are safe
// for concurrent use.
type Cache struct {
	log       logr.Logger
	reflector *cache.Reflector
	index     *watching.Index[*v1alpha1.PolicyException, *entry]
	metrics   *metrics
	clock     clock.PassiveClock

	// changed is sent when the set changes, objectsChanged also when a status does.
	changed, objectsChanged await.Signal

	// mutex guards entries, which has the content of the index.
	mutex   sync.Mutex
	entries map[string]*entry
	set     atomic.Pointer[policyset.Exceptions]
}

// entry is an exception, as an object and as it is evaluated.
type entry struct {
	object    *v1alpha1.PolicyException
	exception *policyset.Exception
}

// sameSpec reports whether two entries are the same exception with the same spec.
func sameSpec(a, b *entry) bool {
	return a != nil && b != nil && a.object.UID == b.object.UID && a.object.Generation == b.object.Generation
}

// New returns a Cache that has not started. It fails when no client can be made of the configuration or the metrics are
// registered already.
func New(o Options) (*Cache, error) {
	source, err := watching.Resource(o.Config, v1alpha1.GroupVersion, v1alpha1.AddToScheme, "policyexceptions")
	if err != nil {
		return nil, fmt.Errorf("making the exception cache's client: %w", err)
	}
	c := newCache(o, source)
	if o.Registerer != nil {
		if err := c.metrics.register(o.Registerer, c); err != nil {
			return nil, fmt.Errorf("registering exception cache metrics: %w", err)
		}
	}
	return c, nil
}

func newCache(o Options, source cache.ListerWatcher) *Cache {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Cache{log: o.Logger, metrics: newMetrics(), clock: o.Clock, entries: map[string]*entry{}}
	c.set.Store(policyset.NewExceptions(nil))
	c.index = watching.NewIndex(watching.Options[*v1alpha1.PolicyException, *entry]{
		Kind: "PolicyExceptions",
		Convert: func(object *v1alpha1.PolicyException, stored *entry, found bool) (*entry, error) {
			// Managed fields are not needed, and large.
			object.ManagedFields = nil
			next := &entry{object: object}
			if found && sameSpec(stored, next) {
				next.exception = stored.exception
			} else {
				next.exception = policyset.NewException(object)
			}
			return next, nil
		},
		Changed: c.update,
	})
	c.reflector = watching.Reflector("exceptioncache", source, &v1alpha1.PolicyException{}, c.index, c.log)
	return c
}

// update replaces the set if the spec of an exception has changed.
func (c *Cache) update(update watching.Update[*entry]) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	changed := update.First
	for _, each := range update.Changes {
		if each.Exists {
			c.entries[each.Name] = each.After
		} else {
			delete(c.entries, each.Name)
		}
		if each.Existed != each.Exists || !sameSpec(each.Before, each.After) {
			changed = true
		}
	}
	if changed {
		var list []*policyset.Exception
		for _, one := range c.entries {
			list = append(list, one.exception)
		}
		c.set.Store(policyset.NewExceptions(list))
		c.metrics.retain(list)
		c.changed.Send()
	}
	c.objectsChanged.Send()
}

// Start fills and updates the cache until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	watching.Run(ctx, c.log, c.reflector)
	return nil
}

// NeedLeaderElection returns false: every replica has a cache of its own.
func (c *Cache) NeedLeaderElection() bool { return false }

// Synced reports whether the first list has arrived.
func (c *Cache) Synced() bool { return c.index.Synced() }

// Set returns the exceptions, also those that have ended.
func (c *Cache) Set() *policyset.Exceptions { return c.set.Load() }

// Objects returns the PolicyExceptions with their status, sorted by name. They must not be modified.
func (c *Cache) Objects() []*v1alpha1.PolicyException {
	var objects []*v1alpha1.PolicyException
	for _, one := range c.index.List() {
		objects = append(objects, one.object)
	}
	slices.SortFunc(objects, func(a, b *v1alpha1.PolicyException) int { return cmp.Compare(a.Name, b.Name) })
	return objects
}

// Changed returns a channel that is closed when the result of Set changes.
func (c *Cache) Changed() <-chan struct{} { return c.changed.Changed() }

// ObjectsChanged returns a channel that is closed when the result of Objects changes.
func (c *Cache) ObjectsChanged() <-chan struct{} { return c.objectsChanged.Changed() }

// Used counts the exceptions of one request, once for each policy.
func (c *Cache) Used(excepted []policyset.Excepted) { c.metrics.used(excepted) }
