package single

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Queue is what sources put requests into.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// AtStart asks for the request once, when the controller starts.
func AtStart(request reconcile.Request) source.Source {
	return source.Func(func(_ context.Context, q Queue) error {
		q.Add(request)
		return nil
	})
}

// OnChange asks for the request a delay after each change, so that changes that come together are answered together. news returns
// a channel that the next change closes.
func OnChange(request reconcile.Request, delay time.Duration, news func() <-chan struct{}) source.Source {
	return source.Func(func(ctx context.Context, q Queue) error {
		changed := news()
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-changed:
					// Whatever changes from here on is news again.
					changed = news()
					q.AddAfter(request, delay)
				}
			}
		}()
		return nil
	})
}

// OnEvent asks for the request whatever happens to an object that is watched.
func OnEvent(request reconcile.Request) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{request}
	})
}
