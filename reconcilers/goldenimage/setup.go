package goldenimage

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

const (
	// concurrency is more than that of other reconcilers: a check of a registry that does not answer occupies a worker.
	concurrency = 8

	// Delays between attempts after a failure.
	shortestRetry = time.Second
	longestRetry  = time.Minute
)

// SetupWithManager adds the reconciler to the manager, which runs it on the leader.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	if err := single.Add(mgr, single.Controller{Name: controllerName, Reconciler: r, Workers: concurrency, ShortestRetry: shortestRetry, LongestRetry: longestRetry}, r.wake.source()); err != nil {
		return err
	}
	return single.Add(mgr, single.Controller{Name: usageControllerName, Reconciler: r.usage, ShortestRetry: shortestRetry, LongestRetry: longestRetry}, r.usage.source())
}
