package publication

import (
	"context"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Options are what a Watch needs.
type Options struct {
	// Config, HTTPClient, Mapper and Scheme reach the API server; a manager has them all.
	Config     *rest.Config
	HTTPClient *http.Client
	Mapper     meta.RESTMapper
	Scheme     *runtime.Scheme
	// Targets are the configurations to watch. There may be none.
	Targets []Target
	// Clock is for the time since when something is published. Default: the real one.
	Clock clock.PassiveClock
}

// Watch holds what the named webhook configurations publish. It is a manager.Runnable that runs on every replica.
type Watch struct {
	clock   clock.PassiveClock
	watched []watched
	state   *publishedState
}

// watched is one configuration with the cache that holds it, and nothing else.
type watched struct {
	target Target
	cache  cache.Cache
	// recorded reports whether the first state has been recorded.
	recorded toolscache.InformerSynced
}

// New returns a Watch of the targets.
func New(ctx context.Context, options Options) (*Watch, error) {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	watch := &Watch{clock: options.Clock, state: newPublishedState()}
	for _, target := range options.Targets {
		one, err := cache.New(options.Config, cache.Options{
			HTTPClient: options.HTTPClient,
			Mapper:     options.Mapper,
			Scheme:     options.Scheme,
			ByObject: map[client.Object]cache.ByObject{
				target.object(): {Field: fields.OneTermEqualSelector("metadata.name", target.Name)},
			},
			DefaultTransform:            cache.TransformStripManagedFields(),
			ReaderFailOnMissingInformer: true,
		})
		if err != nil {
			return nil, fmt.Errorf("making the cache of %s: %w", target, err)
		}
		informer, err := one.GetInformer(ctx, target.object(), cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("making the watch of %s: %w", target, err)
		}
		registration, err := informer.AddEventHandler(watch.recorder(target))
		if err != nil {
			return nil, fmt.Errorf("listening to the watch of %s: %w", target, err)
		}
		watch.watched = append(watch.watched, watched{target, one, registration.HasSynced})
	}
	return watch, nil
}

// recorder records the changes of a configuration.
func (w *Watch) recorder(target Target) toolscache.ResourceEventHandler {
	record := func(object any) {
		w.state.record(ConfigurationOf(object.(client.Object)), w.clock.Now())
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    record,
		UpdateFunc: func(_, object any) { record(object) },
		DeleteFunc: func(any) { w.state.forget(target) },
	}
}

// Start watches until ctx ends.
func (w *Watch) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, one := range w.watched {
		group.Go(func() error {
			if err := one.cache.Start(ctx); err != nil {
				return fmt.Errorf("watching %s: %w", one.target, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica needs what is published.
func (w *Watch) NeedLeaderElection() bool {
	return false
}

// Synced reports whether the first state of every configuration, or its absence, has been recorded.
func (w *Watch) Synced() bool {
	for _, one := range w.watched {
		if !one.recorded() {
			return false
		}
	}
	return true
}

// Published returns what the existing configurations publish, and a channel that is closed when that changes.
func (w *Watch) Published() ([]Published, <-chan struct{}) {
	return w.state.snapshot()
}

// Configurations returns the existing configurations from the caches.
func (w *Watch) Configurations(ctx context.Context) ([]Configuration, error) {
	var configurations []Configuration
	for _, one := range w.watched {
		object := one.target.object()
		err := one.cache.Get(ctx, client.ObjectKey{Name: one.target.Name}, object)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", one.target, err)
		}
		configurations = append(configurations, ConfigurationOf(object))
	}
	return configurations, nil
}

// Sources returns an event source of each configuration, for a controller that reacts to them.
func (w *Watch) Sources(handler handler.EventHandler) []source.Source {
	sources := make([]source.Source, len(w.watched))
	for i, one := range w.watched {
		sources[i] = source.Kind(one.cache, one.target.object(), handler)
	}
	return sources
}
