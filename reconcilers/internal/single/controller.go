package single

import (
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/internal/turns"
)

// cacheSyncTimeout is the timeout for the watches of a controller to start. They may have to wait for the definition of a kind, and a timeout would
// end a process that serves webhooks.
const cacheSyncTimeout = 365 * 24 * time.Hour

// Controller holds the parameters of Add.
type Controller struct {
	// Name is its name in logs and in controller-runtime's metrics.
	Name       string
	Reconciler reconcile.Reconciler
	// Workers is the number of requests that are reconciled at a time. Zero is one.
	Workers int
	// ShortestRetry and LongestRetry limit the delay between attempts after a failure, which doubles each time.
	ShortestRetry, LongestRetry time.Duration
}

// Add adds a controller with its sources to the manager, which runs it on the leader. Namespaces take turns.
func Add(mgr manager.Manager, c Controller, sources ...source.Source) error {
	one, err := controller.New(c.Name, mgr, controller.Options{
		Reconciler:              c.Reconciler,
		MaxConcurrentReconciles: c.Workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](c.ShortestRetry, c.LongestRetry),
		NewQueue:                turns.Queue,
		CacheSyncTimeout:        cacheSyncTimeout,
	})
	if err != nil {
		return fmt.Errorf("making the controller %s: %w", c.Name, err)
	}
	for _, each := range sources {
		if err := one.Watch(each); err != nil {
			return fmt.Errorf("adding a source to the controller %s: %w", c.Name, err)
		}
	}
	return nil
}
