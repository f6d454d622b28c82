package single

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Queue is the queue that sources add requests to.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// AtStart adds the request once, when the controller starts.
func AtStart(request reconcile.Request) source.Source {
	return source.Func(func(_ context.Context, q Queue) error {
		q.Add(request)
		return nil
	})
}

// OnChange adds the request a delay after each change, so that changes in quick succession are processed together. news returns a channel
// that is closed by the next change.
func OnChange(request reconcile.Request, delay time.Duration, news func() <-chan struct{}) source.Source {
	return source.Func(func(ctx context.Context, q Queue) error {
		changed := news()
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-changed:
					// Later changes close the new channel.
					changed = news()
					q.AddAfter(request, delay)
				}
			}
		}()
		return nil
	})
}

// Drain starts to call a function for each item of a queue, and ends when ctx does. It is for callbacks that must not block: they add to the
// queue, and the function may.
func Drain[T comparable](ctx context.Context, items workqueue.TypedInterface[T], each func(T)) {
	go func() {
		<-ctx.Done()
		items.ShutDown()
	}()
	go func() {
		for {
			one, ended := items.Get()
			if ended {
				return
			}
			each(one)
			items.Done(one)
		}
	}()
}

// OnEvents adds the request for every event of these objects of a cache.
func OnEvents(request reconcile.Request, watches cache.Cache, watched map[client.Object]cache.ByObject) []source.Source {
	var sources []source.Source
	for object := range watched {
		sources = append(sources, source.Kind(watches, object, OnEvent(request)))
	}
	return sources
}

// OnEvent adds the request for every event of a watched object.
func OnEvent(request reconcile.Request) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{request}
	})
}
