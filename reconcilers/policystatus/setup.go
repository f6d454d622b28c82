package policystatus

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

const (
	// delay combines changes in quick succession, such as those of a file of policies.
	delay = 100 * time.Millisecond
	// tick is the interval of reconciliations without a reported change: replicas can end without removing their entries.
	tick = 10 * time.Minute
)

// all is the single request.
var all = reconcile.Request{NamespacedName: types.NamespacedName{Name: "policies"}}

// SetupWithManager adds the reconciler to the manager, which runs it on the leader.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	sources := []source.Source{single.AtStart(all), single.OnChange(all, delay, r.options.Policies.StatesChanged)}
	if r.options.Routes != nil {
		sources = append(sources, single.OnChange(all, delay, r.options.Routes.Changed))
	}
	return single.Add(mgr, single.Controller{
		Name: "policy-status", Reconciler: r, ShortestRetry: 500 * time.Millisecond, LongestRetry: 30 * time.Second,
	}, sources...)
}
