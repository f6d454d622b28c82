package audit

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/vmstencil/stencil/reconcilers/coverage"
)

// audit reads and judges every machine that approvals govern or policies apply to, writes the Reports, and returns what was
// found.
func (r *Reconciler) audit(ctx context.Context, snapshot coverage.Snapshot, start time.Time) (results, error) {
	ledger, err := r.reports.open(ctx, start)
	if err != nil {
		// Reports are for other tools. Machines are judged without them.
		log.FromContext(ctx).Error(err, "no Reports are written by this audit")
		r.metrics.unwritten.Inc()
	}
	policing := r.policingOf(start)
	s := scan{
		machines:   r.machines,
		templates:  r.options.Templates,
		claims:     r.claims,
		instances:  r.instanceCheck,
		cluster:    r.options.Additions,
		governed:   snapshot.Governed(),
		policing:   policing,
		policed:    policing.policed(snapshot.Namespaces),
		namespaces: len(snapshot.Namespaces),
		retries:    pageRetries(),
		finished: func(ctx context.Context, n namespaceTally) {
			if ledger != nil {
				ledger.write(ctx, n)
			}
		},
	}
	found, err := s.run(ctx)
	if err != nil {
		return results{}, err
	}
	r.closeLedger(ctx, ledger)
	return found, nil
}

// instanceCheck is for one list.
func (r *Reconciler) instanceCheck() *instanceCheck {
	check := &instanceCheck{lister: r.instances, writable: r.options.WritableKeys}
	if r.options.Instancetypes != nil {
		check.sizes = r.options.Instancetypes.Known()
	}
	return check
}

func (r *Reconciler) closeLedger(ctx context.Context, ledger *ledger) {
	r.reportless.Store(ledger == nil)
	if ledger == nil {
		r.metrics.served.Set(0)
		r.metrics.reports.Set(0)
		return
	}
	kept, failures, err := ledger.close(ctx)
	r.metrics.served.Set(1)
	r.metrics.reports.Set(float64(kept))
	r.metrics.unwritten.Add(float64(failures))
	if err != nil {
		log.FromContext(ctx).Error(err, "some Reports could not be kept", "reports", failures)
	}
}
