package capture

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

const (
	// concurrency is the number of requests that are reconciled at a time. A request that waits for other controllers takes no worker.
	concurrency = 4

	// Delays between attempts after a failure.
	shortestRetry = time.Second
	longestRetry  = time.Minute
)

// SetupWithManager adds the reconciler to the manager, which runs it on the leader.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	w, err := newWake(mgr.GetConfig(), mgr.GetLogger().WithName(controllerName))
	if err != nil {
		return err
	}
	return single.Add(mgr, single.Controller{Name: controllerName, Reconciler: r, Workers: concurrency, ShortestRetry: shortestRetry, LongestRetry: longestRetry}, w.source())
}
