package objects

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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
	if err := single.Add(mgr, single.Controller{Name: controllerName, Reconciler: r, Workers: concurrency, ShortestRetry: shortestRetry, LongestRetry: longestRetry}, r.wake.source()); err != nil {
		return err
	}
	k, err := newKeys(mgr.GetConfig(), secret, r.keys, r.wake.keys)
	if err != nil {
		return err
	}
	request := reconcile.Request{NamespacedName: secret}
	return single.Add(mgr, single.Controller{Name: keysControllerName, Reconciler: k, ShortestRetry: shortestRetry, LongestRetry: longestRetry},
		// A deleted Secret is made again.
		single.AtStart(request), single.OnChange(request, 0, r.keys.Changed))
}
