package audit

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/reconcilers/coverage"
)

const (
	auditController  = "audit"
	statusController = "approval-status"

	// Delays gather changes that come together: a whole file of approvals, or a catalogue of templates.
	auditDelay  = time.Second
	statusDelay = 200 * time.Millisecond

	// Delays between attempts after a failure.
	shortestRetry = time.Second
	longestRetry  = time.Minute
	// patience is how long the watches may take to start. They wait for the definition of TemplateApproval, and nothing
	// is won by ending a process that serves webhooks.
	patience = 365 * 24 * time.Hour
)

// queue is what sources put requests into.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager adds both controllers to the manager, which runs them on the leader.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	audits := append(r.options.Coverage.Sources(auditDelay),
		r.templatesChanged(auditDelay), r.reportsInstalled())
	if err := add(mgr, auditController, r, audits); err != nil {
		return err
	}
	statusSources := append(r.options.Coverage.Sources(statusDelay),
		r.templatesChanged(statusDelay), r.auditEnded())
	return add(mgr, statusController, &statuses{r.options, r.outcomes}, statusSources)
}

func add(mgr manager.Manager, name string, reconciler reconcile.Reconciler, sources []source.Source) error {
	one, err := controller.New(name, mgr, controller.Options{
		Reconciler:       reconciler,
		RateLimiter:      workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](shortestRetry, longestRetry),
		CacheSyncTimeout: patience,
	})
	if err != nil {
		return fmt.Errorf("making the controller %s: %w", name, err)
	}
	for _, each := range sources {
		if err := one.Watch(each); err != nil {
			return fmt.Errorf("adding a source to the controller %s: %w", name, err)
		}
	}
	return nil
}

// templatesChanged asks for the one request, a delay after templates have changed.
func (r *Reconciler) templatesChanged(delay time.Duration) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		changed := r.options.Templates.Changed()
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-changed:
					// Whatever changes from here on is news again.
					changed = r.options.Templates.Changed()
					q.AddAfter(coverage.Cluster, delay)
				}
			}
		}()
		return nil
	})
}

// auditEnded asks for the one request when an audit has ended.
func (r *Reconciler) auditEnded() source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-r.outcomes.news:
					q.Add(coverage.Cluster)
				}
			}
		}()
		return nil
	})
}

// reportsInstalled asks for an audit when the definition of Reports, which was missing at the last one, has been installed.
func (r *Reconciler) reportsInstalled() source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
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
