package watching

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"
)

// servedInterval is the interval at which the API server is polled for a kind that it does not serve.
const servedInterval = 5 * time.Second

// Late describes how to watch a kind that may be installed after Stencil, and may be removed again.
type Late struct {
	Resource schema.GroupVersionResource
	// Source lists and watches the objects, which have the type of Example. Into stores them.
	Source  cache.ListerWatcher
	Example runtime.Object
	Into    cache.ReflectorStore
	// Name is for logs.
	Name string
	// Failed is called with the error when the objects cannot be listed or watched; with NotFound if the API server does not
	// serve the kind. Optional.
	Failed func(error)
	// Interval is the interval at which the API server is polled for a kind that it does not serve. Default: 5 s.
	Interval time.Duration
}

// RunLate watches kinds until ctx ends and all watches have. While the API server does not serve a kind, RunLate only polls
// discovery for it: a reflector would list in vain and log an error each time, but many clusters never have all kinds.
func RunLate(ctx context.Context, log logr.Logger, served discovery.ServerResourcesInterface, kinds ...Late) {
	var running sync.WaitGroup
	for _, kind := range kinds {
		if kind.Failed == nil {
			kind.Failed = func(error) {}
		}
		if kind.Interval == 0 {
			kind.Interval = servedInterval
		}
		running.Go(func() { (&late{Late: kind, served: served, log: log}).run(ctx) })
	}
	running.Wait()
}

// late watches one Late.
type late struct {
	Late
	served discovery.ServerResourcesInterface
	log    logr.Logger
	// stop ends the running reflector.
	stop atomic.Pointer[context.CancelFunc]
}

func (l *late) run(ctx context.Context) {
	reflector := Reflector(l.Name, l.watchErrors(), l.Example, l.Into, l.log)
	tick := time.NewTicker(l.Interval)
	defer tick.Stop()
	for {
		if l.isServed() {
			one, stop := context.WithCancel(ctx)
			l.stop.Store(&stop)
			Run(one, l.log, reflector)
			stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// isServed queries the API server's discovery for the kind.
func (l *late) isServed() bool {
	listed, err := l.served.ServerResourcesForGroupVersion(l.Resource.GroupVersion().String())
	switch {
	case err == nil && slices.ContainsFunc(listed.APIResources, func(r metav1.APIResource) bool { return r.Name == l.Resource.Resource }):
		return true
	case err == nil || apierrors.IsNotFound(err):
		l.Failed(apierrors.NewNotFound(l.Resource.GroupResource(), ""))
	default:
		l.log.Info("asking whether a kind is served failed", "resource", l.Resource.Resource, "reason", err.Error())
	}
	return false
}

// watchErrors returns the source. The returned source also reports errors to Failed, and stops the reflector on NotFound.
func (l *late) watchErrors() cache.ListerWatcher {
	source := cache.ToListerWatcherWithContext(l.Source)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			listed, err := source.ListWithContext(ctx, options)
			l.report(err)
			return listed, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			watched, err := source.WatchWithContext(ctx, options)
			l.report(err)
			return watched, err
		},
	}
}

func (l *late) report(err error) {
	if err == nil {
		return
	}
	l.Failed(err)
	if apierrors.IsNotFound(err) {
		(*l.stop.Load())()
	}
}
