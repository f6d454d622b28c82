package lending

import (
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	concurrency = 4

	// Delays between attempts after a failure.
	shortestRetry = time.Second
	longestRetry  = time.Minute
)

// SetupWithManager adds the reconciler to the manager, which runs it on the leader.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
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
	return nil
}
