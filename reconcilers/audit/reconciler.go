package audit

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/approval"
	policycache "github.com/vmstencil/stencil/cache/policies"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
)

// DefaultInterval is the time between two audits when nothing changes.
const DefaultInterval = 10 * time.Minute

// TemplateCache holds templates. A templatecache.Cache implements it.
type TemplateCache interface {
	Templates
	List() []*templatecache.Template
	Synced() bool
	// Changed returns a channel that is closed when a template is created or deleted, or its content or labels change.
	Changed() <-chan struct{}
}

// Options are the dependencies and settings of a Reconciler.
type Options struct {
	// Config is the configuration of the API server. The audit has its own clients for VirtualMachines and Reports.
	Config    *rest.Config
	Coverage  *coverage.Watch
	Templates TemplateCache
	// Client writes the statuses of approvals. Its scheme must contain stencil.kubevirt.io/v1alpha1.
	Client client.Client
	// Recorder receives events about approvals. Its scheme must contain the same version.
	Recorder events.EventRecorder
	// Policies, with Instancetypes and Namespaces, are for the evaluation of policies. If nil, only approvals are evaluated.
	Policies      Policies
	Instancetypes Instancetypes
	// Exceptions may be nil; there are no exceptions then.
	Exceptions Exceptions
	Namespaces Namespaces
	// Registerer receives the metrics.
	Registerer prometheus.Registerer
	// Interval is the time between two audits when nothing changes. Default: DefaultInterval.
	Interval time.Duration
	// ReportsInterval is the time between two checks for the definition of Reports, while it is not installed. Default: 30 s.
	ReportsInterval time.Duration
	// Additions are the places at which the cluster itself adds to VMs. Default: those of KubeVirt.
	Additions *approval.Additions
	// Observed are the objects that run VMs. If nil, an audit begins only when something else changes, and pods are not compared.
	Observed Observed
	// LauncherImages are additional repositories from which images of containers in the pods of VMs may come, beside KubeVirt's.
	LauncherImages []string
	// Controllers are API groups of controllers that may own VirtualMachines and put finalizers on them, beside KubeVirt's.
	Controllers []string
	// OpenEntryPoints are the names of the chart's values below `entryPoints` that are Open.
	OpenEntryPoints []string
	// ChangeDelay is the time for which changes of observed objects are batched. Default: 5 s.
	ChangeDelay time.Duration
	// WritableKeys are the labels and annotations of running VMs that others may write, as the chart value writableInstanceKeys.
	WritableKeys []string
	// Clock returns the time of an audit. Default: the real clock.
	Clock clock.PassiveClock
}

// Reconciler audits. It handles two requests: coverage.Cluster audits everything, and changed audits the namespaces in which observed
// objects changed. Reconcile is never called concurrently.
type Reconciler struct {
	options     Options
	vms         pager
	instances   pager
	claims      pager
	kubevirts   pager
	reports     *reports
	metrics     *metrics
	lastResults *lastResults
	// evaluator evaluates policies, and policies writes their statuses.
	evaluator *policyset.Evaluator
	policies  policyStatuses
	// exceptions writes the statuses of exceptions, and reportedUses the events about their uses.
	exceptions   exceptionStatuses
	reportedUses reportedUses
	// reportless is true if the last audit of everything could not write Reports.
	reportless atomic.Bool
	// last is the last audit of everything that succeeded, nil before the first. Only Reconcile uses it.
	last *lastAudit
	// pending are namespaces that changed and have not been audited since. Only Reconcile uses it.
	pending map[string]bool
}

// New returns a Reconciler.
func New(options Options) (*Reconciler, error) {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Interval == 0 {
		options.Interval = DefaultInterval
	}
	if options.ChangeDelay == 0 {
		options.ChangeDelay = 5 * time.Second
	}
	if options.ReportsInterval == 0 {
		options.ReportsInterval = 30 * time.Second
	}
	var err error
	if options.Additions == nil {
		if options.Additions, err = approval.ClusterAdditions(); err != nil {
			return nil, err
		}
	}
	r := &Reconciler{options: options, lastResults: newLastResults(), evaluator: newAuditEvaluator(), pending: map[string]bool{}}
	if r.vms, err = newAPIServer(options.Config, "virtualmachines"); err != nil {
		return nil, err
	}
	if r.instances, err = newAPIServer(options.Config, "virtualmachineinstances"); err != nil {
		return nil, err
	}
	if r.claims, err = newClaims(options.Config); err != nil {
		return nil, err
	}
	if r.kubevirts, err = newAPIServer(options.Config, "kubevirts"); err != nil {
		return nil, err
	}
	if r.reports, err = newReports(options.Config); err != nil {
		return nil, err
	}
	writer, err := statuswriter.New(options.Config)
	if err != nil {
		return nil, err
	}
	r.policies, r.exceptions, r.reportedUses.recorder = policyStatuses{writer}, exceptionStatuses{writer}, options.Recorder
	if r.metrics, err = newMetrics(options.Registerer); err != nil {
		return nil, err
	}
	return r, nil
}

// syncDelay is the time between two checks whether the caches are synced.
const syncDelay = 200 * time.Millisecond

// Reconcile implements reconcile.Reconciler. It runs one audit.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.synced() {
		return reconcile.Result{RequeueAfter: syncDelay}, nil
	}
	if request == changed {
		return r.auditChanged(ctx)
	}
	snapshot, err := r.options.Coverage.Snapshot(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	start := r.options.Clock.Now()
	last := &lastAudit{snapshot: snapshot, states: r.states()}
	// This audit includes all changes before this point.
	pending := r.takeChanged()
	if last.found, err = r.audit(ctx, last, nil, start); err != nil {
		return reconcile.Result{}, r.failed(ctx, err)
	}
	for _, namespace := range pending {
		delete(r.pending, namespace)
	}
	r.last = last
	end := r.options.Clock.Now()
	r.metrics.duration.Set(end.Sub(start).Seconds())
	r.metrics.lastSuccess.Set(float64(end.UnixMilli()) / 1000)
	if err := r.publish(ctx, end); err != nil {
		return reconcile.Result{}, err
	}
	logf.FromContext(ctx).V(1).Info("audited", "namespaces", len(last.found), "approvals", len(snapshot.Approvals), "duration", end.Sub(start).String())
	return reconcile.Result{RequeueAfter: r.nextAudit(start)}, nil
}

// failed counts and reports a failed audit, and returns the error.
func (r *Reconciler) failed(ctx context.Context, err error) error {
	// A process that is no longer the leader reports nothing.
	if ctx.Err() == nil {
		r.metrics.failures.Inc()
		r.lastResults.failed(err)
	}
	return fmt.Errorf("auditing: %w", err)
}

// publish publishes the results of the last audit.
func (r *Reconciler) publish(ctx context.Context, end time.Time) error {
	found := r.last.found.total()
	var names []string
	for _, a := range r.last.snapshot.Approvals {
		names = append(names, a.Name())
	}
	r.metrics.publish(names, found.approvals)
	r.metrics.publishPolicies(r.last.states, found.policies)
	r.lastResults.succeeded(r.last.snapshot, found.approvals, end)
	if err := r.policies.write(ctx, r.last.states, found.policies, end); err != nil {
		return fmt.Errorf("writing to policies what an audit found: %w", err)
	}
	if err := r.exceptions.write(ctx, r.exceptionObjects(), found.exceptions); err != nil {
		return fmt.Errorf("writing to exceptions what an audit found: %w", err)
	}
	return nil
}

// synced reports whether the caches of templates, policies, instance types and exceptions are synced.
func (r *Reconciler) synced() bool {
	return r.options.Templates.Synced() &&
		(r.options.Policies == nil || r.options.Policies.Synced() && r.options.Instancetypes.Synced()) &&
		(r.options.Exceptions == nil || r.options.Exceptions.Synced())
}

// states returns the states of the policies before an audit. Policies that are added later are not part of it.
func (r *Reconciler) states() []policycache.State {
	if r.options.Policies == nil {
		return nil
	}
	return r.options.Policies.States()
}
