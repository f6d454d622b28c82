package audit

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policycache "github.com/vmstencil/stencil/cache/policies"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
)

// changed is the request for an audit of the namespaces in which observed objects changed.
var changed = reconcile.Request{NamespacedName: types.NamespacedName{Name: "changed"}}

// restFactor is the pause after an audit of changed namespaces, as a multiple of its duration. A namespace with many VMs that change all
// the time therefore takes at most a tenth of one processor.
const restFactor = 9

// lastAudit is the last audit of everything, updated by the audits of changed namespaces since.
type lastAudit struct {
	// snapshot and states are its input. Audits of changed namespaces use them too: when approvals, namespaces or policies change, an audit
	// of everything follows.
	snapshot coverage.Snapshot
	states   []policycache.State
	found    byNamespace
	// rest is the earliest start of the next audit of changed namespaces.
	rest time.Time
}

// takeChanged returns the namespaces that changed, and retains them until they are deleted from pending.
func (r *Reconciler) takeChanged() []string {
	if r.options.Observed != nil {
		for _, namespace := range r.options.Observed.Take() {
			r.pending[namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(r.pending))
}

// auditChanged audits the namespaces in which observed objects changed.
func (r *Reconciler) auditChanged(ctx context.Context) (reconcile.Result, error) {
	if r.last == nil {
		// The first audit includes them.
		return reconcile.Result{}, nil
	}
	start := r.options.Clock.Now()
	if rest := r.last.rest.Sub(start); rest > 0 {
		return reconcile.Result{RequeueAfter: rest}, nil
	}
	listed := map[string]bool{}
	for namespace := range r.last.snapshot.Governed() {
		listed[namespace] = true
	}
	pending := r.takeChanged()
	only := map[string]bool{}
	for _, namespace := range pending {
		if listed[namespace] {
			only[namespace] = true
		}
	}
	if len(only) > fewNamespaces && 2*len(only) > len(listed) {
		_, err := r.Reconcile(ctx, coverage.Cluster)
		return reconcile.Result{}, err
	}
	if len(only) > 0 {
		found, err := r.audit(ctx, r.last, only, start)
		if err != nil {
			return reconcile.Result{}, r.failed(ctx, err)
		}
		for namespace := range only {
			delete(r.last.found, namespace)
		}
		maps.Copy(r.last.found, found)
		end := r.options.Clock.Now()
		r.last.rest = end.Add(restFactor * end.Sub(start))
		r.metrics.changed.Add(float64(len(only)))
		if err := r.publish(ctx, end); err != nil {
			return reconcile.Result{}, err
		}
		logf.FromContext(ctx).V(1).Info("audited what changed", "namespaces", len(only), "duration", end.Sub(start).String())
	}
	for _, namespace := range pending {
		delete(r.pending, namespace)
	}
	return reconcile.Result{}, nil
}
