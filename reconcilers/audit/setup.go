package audit

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

const (
	auditController  = "audit"
	statusController = "approval-status"

	// Delays batch changes that come together: a whole file of approvals, or a catalogue of templates.
	auditDelay  = time.Second
	statusDelay = 200 * time.Millisecond
)

// SetupWithManager adds both controllers to the manager, which runs them on the leader.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	audits := append(r.options.Coverage.Sources(auditDelay),
		single.OnChange(coverage.Cluster, auditDelay, r.options.Templates.Changed), r.reportsInstalled())
	if r.options.Policies != nil {
		audits = append(audits,
			single.OnChange(coverage.Cluster, auditDelay, r.options.Policies.Changed),
			single.OnChange(coverage.Cluster, auditDelay, r.options.Instancetypes.Changed))
	}
	if r.options.Exceptions != nil {
		audits = append(audits, single.OnChange(coverage.Cluster, auditDelay, r.options.Exceptions.Changed))
	}
	if r.options.Observed != nil {
		audits = append(audits, single.OnChange(changed, r.options.ChangeDelay, r.options.Observed.Changed))
	}
	if err := single.Add(mgr, controllerOf(auditController, r), audits...); err != nil {
		return err
	}
	statusSources := append(r.options.Coverage.Sources(statusDelay),
		single.OnChange(coverage.Cluster, statusDelay, r.options.Templates.Changed), r.auditEnded())
	return single.Add(mgr, controllerOf(statusController, &statuses{r.options, r.lastResults}), statusSources...)
}

func controllerOf(name string, reconciler reconcile.Reconciler) single.Controller {
	return single.Controller{Name: name, Reconciler: reconciler, ShortestRetry: time.Second, LongestRetry: time.Minute}
}

// auditEnded enqueues the only request of the status controller when an audit has ended.
func (r *Reconciler) auditEnded() source.Source {
	return source.Func(func(ctx context.Context, q single.Queue) error {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-r.lastResults.changed:
					q.Add(coverage.Cluster)
				}
			}
		}()
		return nil
	})
}

// reportsInstalled enqueues an audit when the last one could not write Reports and the definition of Reports is installed now.
func (r *Reconciler) reportsInstalled() source.Source {
	return source.Func(func(ctx context.Context, q single.Queue) error {
		go func() {
			ticker := time.NewTicker(r.options.ReportsInterval)
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
				}
				if !r.reportless.Load() {
					continue
				}
				if served, err := r.reports.served(ctx); err == nil && served {
					q.Add(coverage.Cluster)
				}
			}
		}()
		return nil
	})
}
