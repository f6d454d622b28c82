package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// audit reads and evaluates every VM that approvals govern or policies apply to, writes the Reports, and returns the results. only limits
// it to some namespaces; nil means no limit.
func (r *Reconciler) audit(ctx context.Context, of *lastAudit, only map[string]bool, start time.Time) (byNamespace, error) {
	writer, openErr := r.openReportWriter(ctx, only, start)
	if openErr != nil {
		// Reports are for other tools. VMs are evaluated without them.
		log.FromContext(ctx).Error(openErr, "no Reports are written by this audit")
		r.metrics.failedReports.Inc()
	}
	launchers, err := r.launcherChecks(ctx)
	if err != nil {
		return nil, err
	}
	snapshot := of.snapshot
	policing := r.policingOf(start)
	var events sync.Mutex
	eventsLeft := maximumExceptionEvents
	s := scan{
		vms:         r.vms,
		templates:   r.options.Templates,
		claims:      r.claims,
		instances:   r.instanceCheck,
		launchers:   launchers,
		controllers: r.options.Controllers,
		only:        only,
		cluster:     r.options.Additions,
		governed:    snapshot.Governed(),
		policing:    policing,
		policed:     policing.policed(snapshot.Namespaces),
		namespaces:  len(snapshot.Namespaces),
		retries:     pageRetries(),
		finished: func(ctx context.Context, n namespaceTally) {
			if writer != nil {
				writer.write(ctx, n)
			}
			events.Lock()
			defer events.Unlock()
			r.reportedUses.report(n.namespace, n.exceptions, &eventsLeft)
		},
	}
	if r.options.Instancetypes != nil {
		s.sizes = r.options.Instancetypes
	}
	found, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	if openErr == nil {
		r.closeReportWriter(ctx, writer, only != nil)
	}
	return found, nil
}

// openReportWriter returns nil when the definition of Reports is not installed.
func (r *Reconciler) openReportWriter(ctx context.Context, only map[string]bool, start time.Time) (*reportWriter, error) {
	switch {
	case only == nil:
		return r.reports.open(ctx, start)
	case r.reportless.Load():
		return nil, nil
	default:
		return r.reports.openOnly(ctx, start, slices.Sorted(maps.Keys(only)))
	}
}

// launcherChecks returns a function that makes the check for one list; nil if pods are not observed.
func (r *Reconciler) launcherChecks(ctx context.Context) (func() *launcherCheck, error) {
	if r.options.Observed == nil {
		return nil, nil
	}
	from := images{others: r.options.LauncherImages}
	if err := readAll(ctx, r.kubevirts, pageRetries(), everywhere, from.addKubeVirt); err != nil {
		return nil, fmt.Errorf("reading which images KubeVirt uses: %w", err)
	}
	return func() *launcherCheck {
		return &launcherCheck{observed: r.options.Observed, images: from, entryPoints: r.options.OpenEntryPoints}
	}, nil
}

// instanceCheck returns a new check for one list.
func (r *Reconciler) instanceCheck() *instanceCheck {
	check := &instanceCheck{lister: r.instances, writable: r.options.WritableKeys, hotplug: slices.Contains(r.options.OpenEntryPoints, "hotplug")}
	if r.options.Instancetypes != nil {
		check.sizes = r.options.Instancetypes.Cached()
	}
	return check
}

// closeReportWriter completes the Reports and counts them. partial is true if the audit was limited to some namespaces.
func (r *Reconciler) closeReportWriter(ctx context.Context, writer *reportWriter, partial bool) {
	if writer == nil {
		if !partial {
			r.reportless.Store(true)
			r.metrics.served.Set(0)
			r.metrics.reports.Set(0)
		}
		return
	}
	current, failures, err := writer.close(ctx)
	if !partial {
		r.reportless.Store(false)
		r.metrics.served.Set(1)
		r.metrics.reports.Set(float64(current))
	}
	r.metrics.failedReports.Add(float64(failures))
	if err != nil {
		log.FromContext(ctx).Error(err, "some Reports could not be written or deleted", "reports", failures)
	}
}
