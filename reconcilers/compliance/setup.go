package compliance

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

// delay combines changes in quick succession, such as those of a catalogue of templates, into one request.
const delay = time.Second

// everything is the single request.
var everything = reconcile.Request{NamespacedName: types.NamespacedName{Name: "templates"}}

// SetupWithManager adds the controller to the manager, which runs it on the leader.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	return single.Add(mgr,
		single.Controller{Name: "policy-compliance", Reconciler: r, ShortestRetry: time.Second, LongestRetry: time.Minute},
		single.AtStart(everything),
		single.OnChange(everything, delay, r.options.Templates.Changed),
		single.OnChange(everything, delay, r.options.Policies.Changed),
		single.OnChange(everything, delay, r.options.Instancetypes.Changed))
}
