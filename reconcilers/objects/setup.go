package objects

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

const (
	concurrency = 4

	// Delays between attempts after a failure.
	shortestRetry = 100 * time.Millisecond
	longestRetry  = time.Minute
)

// SetupWithManager adds the reconcilers of objects and of the keys to the manager, which runs them on the leader.
func (r *Reconciler) SetupWithManager(mgr manager.Manager, secret types.NamespacedName) error {
	one, err := controller.New(controllerName, mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: concurrency,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](shortestRetry, longestRetry),
	})
	if err != nil {
		return fmt.Errorf("making the controller %s: %w", controllerName, err)
	}
	if err := one.Watch(r.wake.source()); err != nil {
		return fmt.Errorf("adding the watches to the controller %s: %w", controllerName, err)
	}
	k, err := newKeys(mgr.GetConfig(), secret, r.keys, r.wake.keys)
	if err != nil {
		return err
	}
	request := reconcile.Request{NamespacedName: secret}
	return single.Add(mgr, single.Controller{Name: keysControllerName, Reconciler: k, ShortestRetry: shortestRetry, LongestRetry: longestRetry},
		single.AtStart(request), changes(request, r.keys.Changed()))
}

// changes adds the request after each change of the keys: a deleted Secret is made again.
func changes(request reconcile.Request, changed <-chan struct{}) source.Source {
	return source.Func(func(ctx context.Context, q single.Queue) error {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-changed:
					q.Add(request)
				}
			}
		}()
		return nil
	})
}
