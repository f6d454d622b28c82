package compliance

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	policycache "github.com/vmstencil/stencil/cache/policies"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/reconcilers/internal/fingerprint"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/template"
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
	States() []policycache.State
	Changed() <-chan struct{}
}

// Instancetypes returns instance types and preferences; instancetypecache.Cache implements it.
type Instancetypes interface {
	Cached() sizing.Resolver
	Synced() bool
	Changed() <-chan struct{}
}

// Options are what a Reconciler needs.
type Options struct {
	// Config reaches the API server, for the statuses.
	Config        *rest.Config
	Templates     Templates
	Policies      Policies
	Instancetypes Instancetypes
	Namespaces    Namespaces
	// Registerer receives the metrics.
	Registerer prometheus.Registerer
	// Interval is the time between two checks when nothing changes. Default:
	// DefaultInterval.
	Interval time.Duration
	// Clock provides the transition times of conditions. Default: the real clock.
	Clock clock.PassiveClock
}

// Reconciler checks all templates. It has a single request, and Reconcile is never called concurrently.
type Reconciler struct {
	options   Options
	statuses  statuses
	evaluator *policyset.Evaluator
	metrics   *metrics
	memory    memory
	// free are the templates to which no policy applies, with the generations of which this is true.
	free atomic.Pointer[map[types.UID]int64]
}

// New returns a Reconciler.
func New(o Options) (*Reconciler, error) {
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	writer, err := statuswriter.New(o.Config)
	if err != nil {
		return nil, err
	}
	metrics, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	return newReconciler(o, apiServer{writer}, metrics), nil
}

func newReconciler(o Options, s statuses, m *metrics) *Reconciler {
	return &Reconciler{
		options: o, statuses: s, metrics: m,
		// A separate evaluator, so that this check does not delay admission requests.
		evaluator: policyset.NewEvaluator(policyset.Options{Workers: 1, Deadline: time.Minute}),
	}
}

// memory caches results that are still valid.
type memory struct {
	set          *policyset.Set
	instancetype <-chan struct{}
	evaluations  map[subject]*evaluation
}

// subject is what a result depends on besides the policies and the instance types.
type subject struct {
	uid        types.UID
	generation int64
	compiled   *template.Compiled
	metadata   fingerprint.Fingerprint
}

// recall returns the cached results, or nil if the policies or the instance types have changed.
func (m *memory) recall(set *policyset.Set, instancetype <-chan struct{}) map[subject]*evaluation {
	if m.set != set || m.instancetype != instancetype {
		return nil
	}
	return m.evaluations
}

// Unevaluated reports whether a template without the condition PolicyCompliant has none because it was not checked yet. It may be called at any
// time.
func (r *Reconciler) Unevaluated(t *templatecache.Template) bool {
	if r.options.Policies.Synced() && r.options.Policies.Set().Empty(rego.KindVirtualMachine, operation) {
		return false
	}
	free := r.free.Load()
	return free == nil || (*free)[t.UID] != t.Generation
}

// syncDelay is how long to wait for the caches at the start.
const syncDelay = 200 * time.Millisecond

// Reconcile implements reconcile.Reconciler: it checks all templates.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	o := r.options
	if !o.Templates.Synced() || !o.Policies.Synced() || !o.Instancetypes.Synced() {
		return reconcile.Result{RequeueAfter: syncDelay}, nil
	}
	start := o.Clock.Now()
	// Read before everything else: a later change triggers the next check.
	instancetype, set := o.Instancetypes.Changed(), o.Policies.Set()
	r.evaluator.Retain(set)
	cached := r.memory.recall(set, instancetype)
	fresh := make(map[subject]*evaluation, len(cached))
	states := o.Policies.States()
	counts := newTally(namesOf(states))
	noncompliant, free := 0, map[types.UID]int64{}
	var failures []error
	templates := sorted(o.Templates.List())
	for _, t := range templates {
		if ctx.Err() != nil {
			return reconcile.Result{}, ctx.Err()
		}
		evaluated := r.evaluate(ctx, set, t, cached, fresh)
		counts.record(t, evaluated)
		condition := evaluated.condition(t.Generation)
		switch {
		case condition == nil && len(fresh) > 0:
			free[t.UID] = t.Generation
		case condition != nil && condition.Status == metav1.ConditionFalse:
			noncompliant++
		}
		failures = append(failures, r.writeCondition(ctx, t, condition))
	}
	r.free.Store(&free)
	counts.finish()
	for _, state := range states {
		name := state.Object.Name
		if want := counts[name]; !equality.Semantic.DeepEqual(state.Object.Status.Templates, want) {
			failures = append(failures, r.statuses.policy(ctx, name, want))
		}
	}
	r.memory = memory{set: set, instancetype: instancetype, evaluations: fresh}
	if err := errors.Join(failures...); err != nil {
		r.metrics.failures.Inc()
		return reconcile.Result{}, err
	}
	r.metrics.noncompliant.Set(float64(noncompliant))
	r.metrics.duration.Set(o.Clock.Since(start).Seconds())
	logf.FromContext(ctx).V(1).Info("checked the templates against the policies", "templates", len(templates), "noncompliant", noncompliant)
	return reconcile.Result{RequeueAfter: o.Interval}, nil
}

func (r *Reconciler) evaluate(ctx context.Context, set *policyset.Set, t *templatecache.Template, cached, fresh map[subject]*evaluation) *evaluation {
	if set.Empty(rego.KindVirtualMachine, operation) {
		// Caching this for every template of a cluster without policies would take megabytes.
		return &evaluation{}
	}
	// A namespace may be missing because it is being deleted or because the watch is behind. Then its metadata is empty, and the next check
	// corrects the result.
	labels, annotations, _ := r.options.Namespaces.Namespace(ctx, t.Namespace)
	compiled, _ := t.Compiled()
	key := subject{t.UID, t.Generation, compiled, fingerprint.Of(t.Labels(), t.Annotations(), labels, annotations)}
	result, found := cached[key]
	if !found {
		namespace := rego.Namespace{Name: t.Namespace, Labels: labels, Annotations: annotations}
		result = evaluator{set, r.evaluator, r.options.Instancetypes.Cached(), r.options.Clock.Now()}.evaluate(ctx, t, namespace)
	}
	fresh[key] = result
	return result
}

// writeCondition writes a condition that differs from the stored one.
func (r *Reconciler) writeCondition(ctx context.Context, t *templatecache.Template, condition *metav1.Condition) error {
	next, changed := statuswriter.Change(t.Conditions(), v1beta1.ConditionPolicyCompliant, condition, r.options.Clock.Now())
	if !changed {
		return nil
	}
	return r.statuses.template(ctx, t, next)
}

func namesOf(states []policycache.State) []string {
	names := make([]string, len(states))
	for i := range states {
		names[i] = states[i].Object.Name
	}
	return names
}

func sorted(templates []*templatecache.Template) []*templatecache.Template {
	slices.SortFunc(templates, func(a, b *templatecache.Template) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return templates
}
