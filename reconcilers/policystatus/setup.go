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
	// delay gathers changes that come together, such as a whole file of policies.
	delay = 100 * time.Millisecond
	// tick is when everything is looked at again although nothing has stirred: replicas fall silent without a word.
	tick = 10 * time.Minute
)

// all is the one request.
var all = reconcile.Request{NamespacedName: types.NamespacedName{Name: "policies"}}

// SetupWithManager adds the reconciler to the manager, which runs it on the leader.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	sources := []source.Source{single.AtStart(all), single.OnChange(all, delay, r.options.Policies.Stirred)}
	if r.options.Routes != nil {
		sources = append(sources, single.OnChange(all, delay, r.options.Routes.Changed))
	}
	return single.Add(mgr, single.Controller{
		Name: "policy-status", Reconciler: r, ShortestRetry: 500 * time.Millisecond, LongestRetry: 30 * time.Second,
	}, sources...)
}
