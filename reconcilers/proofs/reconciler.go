package proofs

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// DefaultInterval is the time between two checks when nothing changes.
const DefaultInterval = 10 * time.Minute

// Templates returns the templates; templatecache.Cache implements it.
type Templates interface {
	List() []*templatecache.Template
	Synced() bool
	Changed() <-chan struct{}
}

// Policies returns the active policies; policycache.Cache implements it.
type Policies interface {
	Synced() bool
	Set() *policyset.Set
	Changed() <-chan struct{}
}

// Instancetypes returns instance types and preferences; instancetypecache.Cache implements it.
type Instancetypes interface {
	Cached() sizing.Resolver
	Synced() bool
	Changed() <-chan struct{}
}

// Approvals returns the approvals and the namespaces that they select; coverage.Watch implements it.
type Approvals interface {
	Snapshot(ctx context.Context) (coverage.Snapshot, error)
}

// Namespaces returns the labels and annotations of namespaces; approvalcache.Cache implements it.
type Namespaces interface {
	Namespace(ctx context.Context, name string) (labels, annotations map[string]string, cached bool)
}

// Options are what a Reconciler needs.
type Options struct {
	// Config reaches the API server, for the statuses.
	Config        *rest.Config
	Templates     Templates
	Policies      Policies
	Instancetypes Instancetypes
	Approvals     Approvals
	Namespaces    Namespaces
	// Interval is the time between two checks when nothing changes. Default:
	// DefaultInterval.
	Interval time.Duration
	// Clock provides the transition times of conditions and measures work. Default: the real clock.
	Clock clock.PassiveClock
}

// limits of the work.
type limits struct {
	// combinations is the number of combinations of values above which a policy is not decided for a template and an approval.
	combinations int
	// template is the time for all questions about a template.
	template time.Duration
	// budget is the work after which the reconciler pauses, for rest times as long as it has worked.
	budget time.Duration
	rest   int
	// retry is the time after which what failed, or took too long, is tried again.
	retry time.Duration
}

// defaultLimits take a quarter of a processor at most.
var defaultLimits = limits{combinations: 2_000, template: 5 * time.Second, budget: time.Second, rest: 3, retry: time.Hour}

// Reconciler decides all questions. It has a single request, and Reconcile is never called concurrently.
type Reconciler struct {
	options   Options
	limits    limits
	statuses  statuses
	evaluator Evaluator
	retain    func(*policyset.Set)
	// resume is when a pause ends.
	resume time.Time
	// after is the namespace at which the budget was used up the last time: the others come first then, so that one with templates that change all the
	// time does not use up every budget.
	after  string
	memory map[question]*answer
}

// New returns a Reconciler.
func New(o Options) (*Reconciler, error) {
	writer, err := statuswriter.New(o.Config)
	if err != nil {
		return nil, err
	}
	return newReconciler(o, apiServer{writer}, defaultLimits), nil
}

func newReconciler(o Options, s statuses, l limits) *Reconciler {
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	// A separate evaluator, so that proofs do not delay admission requests.
	evaluator := policyset.NewEvaluator(policyset.Options{Workers: 1, Deadline: time.Minute})
	return &Reconciler{options: o, limits: l, statuses: s, evaluator: evaluator, retain: evaluator.Retain, memory: map[question]*answer{}}
}

// syncDelay is how long to wait for the caches at the start.
const syncDelay = 200 * time.Millisecond

// Reconcile implements reconcile.Reconciler: it decides what has changed, until the budget is used.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	o := r.options
	if !o.Templates.Synced() || !o.Policies.Synced() || !o.Instancetypes.Synced() {
		return reconcile.Result{RequeueAfter: syncDelay}, nil
	}
	if wait := r.resume.Sub(o.Clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	c, err := r.newCheck(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.retain(c.denying)
	var failures []error
	for _, t := range sorted(o.Templates.List(), r.after) {
		condition, err := c.template(ctx, t)
		if err != nil {
			return reconcile.Result{}, err
		}
		failures = append(failures, r.write(ctx, statuswriter.Template(t), t.Conditions(), condition))
		if c.spent >= r.limits.budget {
			maps.Copy(r.memory, c.fresh)
			r.after = t.Namespace
			pause := time.Duration(r.limits.rest) * c.spent
			r.resume = o.Clock.Now().Add(pause)
			return reconcile.Result{RequeueAfter: pause}, errors.Join(failures...)
		}
	}
	for i := range c.approvals {
		a := &c.approvals[i]
		failures = append(failures, r.write(ctx, statuswriter.Approval(a.Object), a.Object.Status.Conditions, a.condition()))
	}
	r.memory = c.fresh
	logf.FromContext(ctx).V(1).Info("decided the policies for all values of the templates", "questions", len(r.memory), "seconds", c.spent.Seconds())
	return reconcile.Result{RequeueAfter: o.Interval}, errors.Join(failures...)
}

// write writes a condition that differs from the stored one.
func (r *Reconciler) write(ctx context.Context, object statuswriter.Object, stored []metav1.Condition, condition *metav1.Condition) error {
	next, changed := statuswriter.Change(stored, v1beta1.ConditionPolicyCompliantForAllValues, condition, r.options.Clock.Now())
	if !changed {
		return nil
	}
	return r.statuses.write(ctx, object, next)
}

// sorted orders templates by namespace and name. The first namespace is the one behind after, and after the last.
func sorted(templates []*templatecache.Template, after string) []*templatecache.Template {
	turn := func(t *templatecache.Template) int {
		if t.Namespace > after {
			return 0
		}
		return 1
	}
	slices.SortFunc(templates, func(a, b *templatecache.Template) int {
		return cmp.Or(cmp.Compare(turn(a), turn(b)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return templates
}
