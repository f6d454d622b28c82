package proofs

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

// delay combines changes in quick succession, such as those of a catalogue of templates, into one request.
const delay = time.Second

// Sources returns the event sources of approvals and namespaces; coverage.Watch implements it.
type Sources interface {
	Sources(delay time.Duration) []source.Source
}

// SetupWithManager adds the controller to the manager, which runs it on the leader.
func (r *Reconciler) SetupWithManager(mgr manager.Manager, approvals Sources) error {
	sources := append(approvals.Sources(delay),
		single.AtStart(coverage.Cluster),
		single.OnChange(coverage.Cluster, delay, r.options.Templates.Changed),
		single.OnChange(coverage.Cluster, delay, r.options.Policies.Changed),
		single.OnChange(coverage.Cluster, delay, r.options.Instancetypes.Changed))
	return single.Add(mgr, single.Controller{Name: "policy-proofs", Reconciler: r, ShortestRetry: time.Second, LongestRetry: time.Minute}, sources...)
}
