package policies

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/await"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

const (
	// DefaultLimit is the default timeout to compile a policy, and again to run its tests.
	DefaultLimit = 10 * time.Second
	// retry is the delay before a policy that took too long to compile is compiled again. The delay may have had another
	// cause.
	retry = time.Minute
	// retryUnavailable is the delay before a policy is checked again that could not be checked.
	retryUnavailable = 5 * time.Second
)

// Options are the options of a Cache.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	Logger logr.Logger
	// Registerer registers the metrics; if nil, there are none.
	Registerer prometheus.Registerer
	// Compiler compiles the policies.
	Compiler *rego.Compiler
	// Checker compiles and tests new versions of policies before Compiler does. Without one, the compiler is not protected from them: that is for tests.
	Checker Checker
	// Evaluation are the options of the evaluator. The cache calls its own Observe and OnQuarantine before those given here.
	Evaluation policyset.Options
	// Limit is the timeout to compile a policy, and again to run its tests; DefaultLimit if 0.
	Limit time.Duration
	// Schemas change the schemas of the compiler. Optional.
	Schemas Schemas
	// Data are the values of the cluster that policies read. Without it there are none.
	Data Data
}

// Schemas of the objects that policies read; a schemas.Cache implements it.
type Schemas interface {
	// Await returns when the compiler has the schemas, or they cannot be read.
	Await(context.Context)
	// Changed returns a channel that is closed after the compiler has received other schemas.
	Changed() <-chan struct{}
}

// Cache is a watch cache of compiled policies. It runs until the context of Start
// ends, on every replica. All methods are safe for concurrent use.
type Cache struct {
	builder   *builder
	evaluator *policyset.Evaluator
	reflector *cache.Reflector
	queue     workqueue.TypedDelayingInterface[string]
	metrics   *metrics
	schemas   Schemas
	log       logr.Logger

	// trials limits the concurrent calls of Try.
	trials chan struct{}

	set atomic.Pointer[policyset.Set]

	mutex  sync.Mutex
	active *activeVersions
	// listed is true once the first list has arrived. awaited holds those of its policies that are not built yet.
	listed  bool
	awaited map[string]bool
	// published is true once a set has been published.
	published bool
	// quarantines are the current quarantines, by policy.
	quarantines map[string]policyset.Quarantine
	// changed is sent when the active set changes, statesChanged when the result of States changes.
	changed, statesChanged await.Signal
}

// New returns a Cache that has not started. It fails when no client can be made of
// the configuration or the metrics are registered already.
func New(o Options) (*Cache, error) {
	policies, err := watching.Resource(o.Config, v1alpha1.GroupVersion, v1alpha1.AddToScheme, "virtualmachinepolicies")
	if err != nil {
		return nil, fmt.Errorf("making the client of the policy cache: %w", err)
	}
	if o.Limit == 0 {
		o.Limit = DefaultLimit
	}
	c := newCache(o, policies, newBuilder(o.Compiler, o.Checker, o.Limit, o.Logger))
	if o.Registerer != nil {
		if err := c.metrics.register(o.Registerer, c); err != nil {
			return nil, fmt.Errorf("registering policy cache metrics: %w", err)
		}
	}
	return c, nil
}

func newCache(o Options, policies cache.ListerWatcher, b *builder) *Cache {
	c := &Cache{
		builder:     b,
		queue:       workqueue.NewTypedDelayingQueue[string](),
		metrics:     newMetrics(),
		schemas:     o.Schemas,
		trials:      make(chan struct{}, maximumTrials),
		log:         o.Logger,
		active:      newActiveVersions(binder{o.Data}),
		quarantines: map[string]policyset.Quarantine{},
	}
	c.set.Store(policyset.NewSet(nil))
	c.evaluator = policyset.NewEvaluator(c.listening(o.Evaluation))
	c.reflector = watching.Reflector("policycache", policies, &v1alpha1.VirtualMachinePolicy{}, newIndex(c.update), c.log)
	return c
}

// listening adds the cache's own listeners to the evaluator's options.
func (c *Cache) listening(o policyset.Options) policyset.Options {
	observe, quarantined := o.Observe, o.OnQuarantine
	o.Observe = func(e policyset.Evaluation) {
		c.metrics.observe(e)
		if observe != nil {
			observe(e)
		}
	}
	o.OnQuarantine = func(q policyset.Quarantine) {
		c.quarantined(q)
		if quarantined != nil {
			quarantined(q)
		}
	}
	return o
}

// Start fills and updates the cache until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	ctx = logr.NewContext(ctx, c.log)
	var workers sync.WaitGroup
	if c.schemas != nil {
		c.schemas.Await(ctx)
		workers.Go(func() { c.followSchemas(ctx) })
	}
	if c.active.binder.data != nil {
		workers.Go(func() { c.followData(ctx) })
	}
	for i := range runtime.GOMAXPROCS(0) {
		workers.Go(func() { c.work(ctx, i > 0) })
	}
	watching.Run(ctx, c.log, c.reflector)
	c.queue.ShutDown()
	workers.Wait()
	return nil
}

// NeedLeaderElection returns false: every replica has a cache of its own.
func (c *Cache) NeedLeaderElection() bool { return false }

// Synced reports whether all policies of the first list are compiled and tested, and the values that they read have been read.
func (c *Cache) Synced() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.synced()
}

func (c *Cache) synced() bool {
	// A policy that is added later does not make the others unknown.
	return c.listed && len(c.awaited) == 0 && (c.published || c.active.ready())
}

// Set returns the active policies. It is never nil, and empty before Synced.
func (c *Cache) Set() *policyset.Set { return c.set.Load() }

// Evaluator returns the evaluator of the policies, which records metrics.
func (c *Cache) Evaluator() *policyset.Evaluator { return c.evaluator }

// Changed returns a channel that is closed when the active policies or their versions change.
func (c *Cache) Changed() <-chan struct{} { return c.changed.Changed() }

// StatesChanged returns a channel that is closed when the result of States changes, except for the statistics.
func (c *Cache) StatesChanged() <-chan struct{} { return c.statesChanged.Changed() }

// work builds the queued policies. Helpers end once the first list is built.
func (c *Cache) work(ctx context.Context, helper bool) {
	for !helper || !c.Synced() {
		name, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		c.process(ctx, name)
		c.queue.Done(name)
	}
}

// process builds the newest version of a policy.
func (c *Cache) process(ctx context.Context, name string) {
	c.mutex.Lock()
	r := c.active.policies[name]
	if r == nil || r.built() && !r.last.overrun && !c.builder.outdated(r.last) {
		c.mutex.Unlock()
		return
	}
	object, active := r.object, r.active
	c.mutex.Unlock()

	built := c.builder.build(ctx, object, active)
	if built.unavailable != nil {
		if ctx.Err() == nil {
			c.log.Error(built.unavailable, "this VirtualMachinePolicy could not be compiled; trying again", "policy", object.Name, "generation", object.Generation)
			c.queue.AddAfter(name, retryUnavailable)
		}
		return
	}
	if c.isPublished() {
		// Before, no policy is active until all values have been read.
		c.active.binder.await(ctx, built.good)
	}
	if ctx.Err() != nil {
		return
	}
	c.metrics.built(built)
	c.logBuild(object, built)
	if built.overrun {
		c.queue.AddAfter(name, retry)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	changed := c.active.recordBuild(object, built)
	if r = c.active.policies[name]; r == nil || r.built() {
		delete(c.awaited, name)
	}
	if r != nil && c.builder.outdated(r.last) {
		// The schemas have changed meanwhile.
		c.queue.Add(name)
	}
	c.publish(changed)
}

func (c *Cache) isPublished() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.published
}

// followSchemas queues the policies that other schemas may make valid, until ctx ends.
func (c *Cache) followSchemas(ctx context.Context) {
	for {
		changed := c.schemas.Changed()
		c.mutex.Lock()
		for name, r := range c.active.policies {
			if c.builder.outdated(r.last) {
				c.queue.Add(name)
			}
		}
		c.mutex.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (c *Cache) logBuild(object *v1alpha1.VirtualMachinePolicy, b *build) {
	log := c.log.WithValues("policy", object.Name, "generation", b.generation)
	if b.anyFields {
		log.Info("this VirtualMachinePolicy reads fields that the installed KubeVirt does not have; it stays active, and the fields are undefined")
	}
	switch {
	case len(b.problems) > 0:
		log.Info("this VirtualMachinePolicy does not compile", "problem", b.problems[0].String(), "problems", len(b.problems))
	case len(b.failed) > 0:
		log.Info("a test of this VirtualMachinePolicy fails", "test", b.failed[0].Name, "failed", len(b.failed))
	default:
		log.V(1).Info("built a policy", "duration", b.compiling.String(), "tests", b.tests)
	}
}

// publish announces a change of States, and publishes the active set if that has changed. It must be called with the lock
// held. No policy is active until the first list is built.
func (c *Cache) publish(changed bool) {
	c.statesChanged.Send()
	if !c.synced() || !changed && c.published {
		return
	}
	c.published = true
	set := c.active.set()
	c.metrics.syncHandles(set)
	c.set.Store(set)
	c.evaluator.Retain(set)
	maps.DeleteFunc(c.quarantines, func(name string, _ policyset.Quarantine) bool { return c.active.policies[name] == nil })
	c.changed.Send()
}

// quarantined records a quarantine that has begun, or ended.
func (c *Cache) quarantined(q policyset.Quarantine) {
	log := c.log.WithValues("policy", q.Policy, "digest", q.Digest)
	if q.Ended {
		log.Info("a policy is out of quarantine")
	} else {
		c.metrics.quarantined(q.Policy)
		log.Info("a policy is in quarantine: its evaluations repeatedly took too long", "until", q.Until, "times", q.Times, "stuck", q.Stuck)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if q.Ended {
		delete(c.quarantines, q.Policy)
	} else {
		c.quarantines[q.Policy] = q
	}
	c.statesChanged.Send()
}
