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
	"github.com/vmstencil/stencil/reconcilers/coverage"
	"github.com/vmstencil/stencil/reconcilers/statuswriter"
)

// DefaultInterval is the time between two audits when nothing changes.
const DefaultInterval = 10 * time.Minute

// TemplateCache is where templates come from; a templatecache.Cache is one.
type TemplateCache interface {
	Templates
	List() []*templatecache.Template
	Synced() bool
	// Changed returns a channel that is closed when a template comes or goes, or changes its content or labels.
	Changed() <-chan struct{}
}

// Options are what a Reconciler needs.
type Options struct {
	// Config reaches the API server. VirtualMachines and Reports are read with clients of the audit's own.
	Config    *rest.Config
	Coverage  *coverage.Watch
	Templates TemplateCache
	// Client writes the statuses of approvals. Its scheme must know stencil.kubevirt.io/v1alpha1.
	Client client.Client
	// Recorder receives events about approvals. Its scheme must know them too.
	Recorder events.EventRecorder
	// Policies, with Instancetypes and Namespaces, are what machines are judged by beside the approvals. Default: nothing.
	Policies      Policies
	Instancetypes Instancetypes
	Namespaces    Namespaces
	// Registerer receives the metrics.
	Registerer prometheus.Registerer
	// Interval is the time between two audits when nothing changes. Default: DefaultInterval.
	Interval time.Duration
	// ReportsInterval is how often it is asked whether the definition of Reports has been installed, while it is not.
	// Default: 30 s.
	ReportsInterval time.Duration
	// Additions are the places at which the cluster itself adds to machines. Default: those that are known of KubeVirt.
	Additions *approval.Additions
	// Observed are the objects that run virtual machines. If nil, an audit begins only when something else changes, and pods are not compared.
	Observed Observed
	// LauncherImages are repositories from which containers in the pods of virtual machines may come, beside KubeVirt's.
	LauncherImages []string
	// Controllers are API groups whose controllers may own VirtualMachines and put finalizers on them, beside KubeVirt's.
	Controllers []string
	// OpenEntryPoints are the names of the chart's values below doors that are Open.
	OpenEntryPoints []string
	// ChangeDelay is how long changes of what runs are gathered. Default: 5 s.
	ChangeDelay time.Duration
	// WritableKeys are the labels and annotations that others may write to running machines, as the chart value writableInstanceKeys.
	WritableKeys []string
	// Clock says when an audit is. Default: the real one.
	Clock clock.PassiveClock
}

// Reconciler audits. There are two requests to it: coverage.Cluster is an audit of everything, and changed of the namespaces in which what
// runs changed. Reconcile is never called concurrently.
type Reconciler struct {
	options   Options
	machines  pager
	instances pager
	claims    pager
	kubevirts pager
	reports   *reports
	metrics   *metrics
	outcomes  *outcomes
	// evaluator and policies are for the policies, and what is written about them.
	evaluator *policyset.Evaluator
	policies  policyStatuses
	// reportless tells that the last audit could not write Reports.
	reportless atomic.Bool
	// last is the last audit of everything that succeeded, nil before; Reconcile alone uses it.
	last *lastAudit
	// pending are namespaces that changed and have not been audited since; Reconcile alone uses it.
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
	r := &Reconciler{options: options, outcomes: newOutcomes(), evaluator: newAuditEvaluator(), pending: map[string]bool{}}
	if r.machines, err = newAPIServer(options.Config, "virtualmachines"); err != nil {
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
	r.policies = policyStatuses{writer}
	if r.metrics, err = newMetrics(options.Registerer); err != nil {
		return nil, err
	}
	return r, nil
}

// syncDelay is how long to wait for the templates at the start.
const syncDelay = 200 * time.Millisecond

// Reconcile implements reconcile.Reconciler: it is one audit.
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
	// What has changed up to here is seen by this audit.
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
	return reconcile.Result{RequeueAfter: r.options.Interval}, nil
}

// failed counts and reports a failed audit, and returns why it failed.
func (r *Reconciler) failed(ctx context.Context, err error) error {
	// A leader whose time is over reports nothing.
	if ctx.Err() == nil {
		r.metrics.failures.Inc()
		r.outcomes.failed(err)
	}
	return fmt.Errorf("auditing: %w", err)
}

// publish publishes what the last audit found.
func (r *Reconciler) publish(ctx context.Context, end time.Time) error {
	found := r.last.found.total()
	var names []string
	for _, a := range r.last.snapshot.Approvals {
		names = append(names, a.Name())
	}
	r.metrics.publish(names, found.approvals)
	r.metrics.publishPolicies(r.last.states, found.policies)
	r.outcomes.succeeded(r.last.snapshot, found.approvals, end)
	if err := r.policies.write(ctx, r.last.states, found.policies, end); err != nil {
		return fmt.Errorf("writing to policies what an audit found: %w", err)
	}
	return nil
}

// synced tells whether everything is known that machines are judged by.
func (r *Reconciler) synced() bool {
	return r.options.Templates.Synced() &&
		(r.options.Policies == nil || r.options.Policies.Synced() && r.options.Instancetypes.Synced())
}

// states are those of the policies before an audit: one that comes later has not been asked.
func (r *Reconciler) states() []policycache.State {
	if r.options.Policies == nil {
		return nil
	}
	return r.options.Policies.States()
}
