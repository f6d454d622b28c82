package readiness

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/internal/powers"
	"github.com/vmstencil/stencil/policies/sample"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
)

// Templates returns the templates; templatecache.Cache implements it.
type Templates interface {
	Get(namespace, name string) *templatecache.Template
	Len() int
	Synced() bool
	Listen(templatecache.Listener)
}

// Approvals returns the approvals of the cluster; coverage.Watch implements it.
type Approvals interface {
	Approvals(ctx context.Context) ([]coverage.Approval, error)
	// ApprovalSource requests coverage.Cluster after changes.
	ApprovalSource(delay time.Duration) source.Source
}

// Options are what a Reconciler needs.
type Options struct {
	// Config reaches the API server.
	Config    *rest.Config
	Templates Templates
	Recorder  events.EventRecorder
	// Permissions of the users who wrote templates.
	Permissions powers.Actions
	// Registerer receives the metrics.
	Registerer prometheus.Registerer
	// Lending enables the condition DisksLent.
	Lending bool
	// Populators are further kinds of objects that are read.
	Populators []sources.Populator
	// Unevaluated reports whether the policies that may apply to a template have not been evaluated yet; nil if there are no policies.
	Unevaluated func(*templatecache.Template) bool
	// DryRun enables dry runs of the VirtualMachine of every template.
	DryRun bool
	// External reports that KubeVirt's own template component serves the API: its controller writes the condition Ready, and its definition has
	// conditions only.
	External bool
	// Approvals name values of parameters without a default; nil if none are read.
	Approvals Approvals
	// Clock provides the transition times of conditions. Default: the real clock.
	Clock clock.WithTicker
}

// Reconciler writes the readiness of each template.
type Reconciler struct {
	options  Options
	sources  watches
	statuses statuses
	metrics  *metrics
	index    *index
	// announcer writes the events.
	announcer *announcer
	// dryRuns is nil if dry runs are disabled.
	dryRuns *dryRuns

	mutex sync.Mutex
	// echoes are digests of the states of templates after their status was written.
	echoes map[types.NamespacedName]uint64
	// denied has the first denial for each template whose last writer lacks a permission.
	denied map[types.NamespacedName]denial
	// open are the templates with open parameters: the values that approvals list decide about their sources.
	open map[types.NamespacedName]bool
	// again requests a template once more.
	again func(types.NamespacedName)
	// decided are the conditions Ready that templates had before a check became necessary which is not made yet.
	decided map[types.NamespacedName]metav1.Condition
}

// watches reads the objects that templates depend on; sources.Watches implements it.
type watches interface {
	lookup
	Synced() bool
	TypeOf(kind sources.Kind) metav1.TypeMeta
	ResourceOf(kind sources.Kind) schema.GroupVersionResource
}

func newReconciler(o Options, s statuses, m *metrics) *Reconciler {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Reconciler{
		options: o, statuses: s, metrics: m, index: newIndex(), announcer: newAnnouncer(o.Recorder, m, o.Clock), echoes: map[types.NamespacedName]uint64{},
		denied: map[types.NamespacedName]denial{}, decided: map[types.NamespacedName]metav1.Condition{}, open: map[types.NamespacedName]bool{},
	}
}

// Reconcile implements reconcile.Reconciler: it processes one template.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.options.Templates.Synced() || !r.sources.Synced() {
		return reconcile.Result{RequeueAfter: syncDelay}, nil
	}
	if request == coverage.Cluster {
		r.approvalsChanged()
		return reconcile.Result{}, nil
	}
	name := request.NamespacedName
	t := r.options.Templates.Get(name.Namespace, name.Name)
	if t == nil {
		r.forget(name)
		return reconcile.Result{}, nil
	}
	observed, seen := r.gather(ctx, name, t)
	for r.index.set(name, seen) {
		// A change after the read and before the update of the index has caused no request: read again.
		observed, seen = r.gather(ctx, name, t)
	}
	if observed.failed != nil {
		return reconcile.Result{}, observed.failed
	}
	if err := r.apply(ctx, name, t, observed); err != nil {
		return reconcile.Result{}, err
	}
	// No object changes when an image becomes stale, or a permission is given or revoked.
	var again time.Duration
	if observed.foreign {
		again = permissionInterval
		if observed.denied {
			again = r.afterDenial(name, t.Generation, observed.now)
		}
	}
	if _, next := staleness(observed.images, observed.now); !next.IsZero() {
		if until := next.Sub(observed.now); again == 0 || until < again {
			again = until
		}
	}
	// No object changes either when policies turn out not to apply.
	if observed.unevaluated && (again == 0 || again > evaluationInterval) {
		again = evaluationInterval
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// denial is the first denial for a generation of a template.
type denial struct {
	generation int64
	at         time.Time
}

// afterDenial returns the time until permissions are checked again: soon after the first denial for this generation, which may have been reused. It counts from
// the first denial, because an event replaces an earlier request in the queue.
func (r *Reconciler) afterDenial(name types.NamespacedName, generation int64, now time.Time) time.Duration {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.denied[name].generation != generation {
		r.denied[name] = denial{generation, now}
	}
	if left := denialInterval - now.Sub(r.denied[name].at); left > 0 {
		return left
	}
	return permissionInterval
}

// gather reads the state of a template's dependencies.
func (r *Reconciler) gather(ctx context.Context, name types.NamespacedName, t *templatecache.Template) (observation, []sources.Key) {
	o := observation{generation: t.Generation, compliance: meta.FindStatusCondition(t.Conditions(), v1beta1.ConditionPolicyCompliant), now: r.options.Clock.Now()}
	resolver := &resolver{lookup: r.sources, seen: []sources.Key{}, namespace: t.Namespace, may: func(key sources.Key) (bool, error) { return r.mayGet(ctx, t, key) }}
	o.invalid = invalid(t)
	if o.compliance != nil && o.compliance.ObservedGeneration != t.Generation {
		o.compliance, o.unevaluated = nil, true
	}
	if o.compliance == nil && r.options.Unevaluated != nil {
		// A leader that has just started has evaluated nothing itself.
		stored := meta.FindStatusCondition(t.Conditions(), r.readyType())
		decided := stored != nil && stored.ObservedGeneration == t.Generation && !pending(stored)
		o.unevaluated = !decided && r.options.Unevaluated(t)
	}
	listed, err := r.listed(ctx, name, t)
	if err != nil {
		o.failed = err
		return o, resolver.seen
	}
	if outlines, problem := sample.Outlines(t, listed); problem != nil {
		o.unrendered = problem
	} else {
		depends := find(outlines[0], t.Namespace)
		for _, other := range outlines[1:] {
			depends.add(find(other, t.Namespace))
		}
		o.found = resolver.survey(depends)
		o.images, o.foreign, o.denied, o.failed = resolver.images, resolver.foreign, resolver.denied, resolver.failed
		o.loans = r.loans(t, outlines[0])
	}
	if r.dryRuns != nil {
		o.dryRun = r.dryRuns.result(name, t, sizes(o.found))
	}
	return o, resolver.seen
}

// listed returns the values that approvals of the template list for its open parameters. Values of sensitive parameters appear in no status.
func (r *Reconciler) listed(ctx context.Context, name types.NamespacedName, t *templatecache.Template) (map[string][]string, error) {
	compiled, err := t.Compiled()
	if err != nil || r.options.Approvals == nil {
		return nil, nil //nolint:nilerr // The condition Valid reports the error.
	}
	open := sample.Open(compiled)
	r.mutex.Lock()
	if len(open) > 0 {
		r.open[name] = true
	} else {
		delete(r.open, name)
	}
	r.mutex.Unlock()
	if len(open) == 0 {
		return nil, nil
	}
	approvals, err := r.options.Approvals.Approvals(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the approvals: %w", err)
	}
	listed := map[string][]string{}
	for _, one := range approvals {
		if approved, _ := one.Approves(approval.Template{Namespace: t.Namespace, Name: t.Name, Labels: t.Labels(), Digest: compiled.Digest()}); !approved {
			continue
		}
		for _, allowed := range approval.Values(one.Approval, compiled) {
			if slices.Contains(open, allowed.Name) && !allowed.Sensitive {
				listed[allowed.Name] = united(listed[allowed.Name], allowed.Enum)
			}
		}
	}
	return listed, nil
}

// approvalsChanged requests the templates whose sources depend on values that approvals list.
func (r *Reconciler) approvalsChanged() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for name := range r.open {
		r.again(name)
	}
}

// invalid returns why a template makes no VirtualMachine if no user gives a value: the template webhook rejects such a template.
func invalid(t *templatecache.Template) error {
	compiled, err := t.Compiled()
	if err != nil {
		return err
	}
	if causes, _ := compiled.CheckDefaults(); len(causes) > 0 {
		return causes.ToAggregate()
	}
	return nil
}

// mayGet reports whether the user who wrote a template may get an object that it depends on.
func (r *Reconciler) mayGet(ctx context.Context, t *templatecache.Template, key sources.Key) (bool, error) {
	user, recorded := powers.Writer(t.Annotations(), t.Generation)
	if !recorded {
		return false, nil
	}
	resource := r.sources.ResourceOf(key.Kind)
	return r.options.Permissions.May(ctx, user, permission.Action{
		Verb: permission.Get, Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Namespace: key.Namespace, Name: key.Name,
	})
}

// loans returns the disks that a VM in another namespace copies.
func (r *Reconciler) loans(t *templatecache.Template, outline map[string]any) []disks.Loan {
	compiled, err := t.Compiled()
	if err != nil || !r.options.Lending {
		return nil
	}
	// No namespace has the empty name: every source with a namespace is one of another.
	found, err := disks.Loans(outline, "", disks.Lender{Namespace: t.Namespace, Name: t.Name, Labels: t.Labels(), Compiled: compiled})
	if err != nil {
		return nil
	}
	return found
}

func lends(t *templatecache.Template) bool { return disks.Lender{Labels: t.Labels()}.Lends() }

// sizes identifies the state of the objects besides the VM that KubeVirt validates: the instance type and the preference.
func sizes(found v1beta1.TemplateSources) string {
	var text strings.Builder
	for _, one := range []*v1beta1.TemplateReference{found.Instancetype, found.Preference} {
		if one != nil {
			text.WriteString(string(one.State) + " ")
		}
	}
	return text.String()
}

func (r *Reconciler) apply(ctx context.Context, name types.NamespacedName, t *templatecache.Template, o observation) error {
	status := &v1beta1.VirtualMachineTemplateStatus{Conditions: decide(o), TemplateSources: o.found}
	if r.options.External {
		meta.FindStatusCondition(status.Conditions, v1beta1.ConditionReady).Type = r.readyType()
		status.TemplateSources = v1beta1.TemplateSources{}
	}
	changed := templatecache.Digest(&status.TemplateSources) != t.Sources
	for i := range status.Conditions {
		next, differs := statuswriter.Transition(t.Conditions(), status.Conditions[i], r.options.Clock.Now())
		status.Conditions[i] = next
		changed = changed || differs
	}
	for _, kind := range []string{v1beta1.ConditionDryRunSucceeded, v1beta1.ConditionDisksLent, v1beta1.ConditionBootSourceStale} {
		// A write without a condition that does not apply any more removes it.
		changed = changed || meta.FindStatusCondition(t.Conditions(), kind) != nil && meta.FindStatusCondition(status.Conditions, kind) == nil
	}
	ready := meta.FindStatusCondition(status.Conditions, r.readyType())
	r.metrics.observe(name, ready, meta.IsStatusConditionTrue(status.Conditions, v1beta1.ConditionBootSourceStale))
	if !changed {
		return nil
	}
	r.expect(name, t, status)
	if err := r.statuses.write(ctx, t, status); err != nil {
		r.expect(name, t, nil)
		return err
	}
	r.metrics.writes.Inc()
	stored := r.lastDecided(name, meta.FindStatusCondition(t.Conditions(), r.readyType()), ready)
	if changed, is := flipOf(t, stored, *ready, o.found); is {
		r.announcer.add(changed)
	}
	return nil
}

// lastDecided returns the condition Ready with which a new one is compared: the stored one, or the one before it if that is pending.
func (r *Reconciler) lastDecided(name types.NamespacedName, stored, ready *metav1.Condition) *metav1.Condition {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if before, is := r.decided[name]; is && pending(stored) {
		stored = &before
	}
	if pending(ready) && stored != nil && !pending(stored) {
		r.decided[name] = *stored
	} else {
		delete(r.decided, name)
	}
	return stored
}

// readyType is the type of the condition that reports whether a template is usable.
func (r *Reconciler) readyType() string {
	if r.options.External {
		return v1beta1.ConditionStencilReady
	}
	return v1beta1.ConditionReady
}

// expect stores the state of a template after a write, so that its watch event is not processed as a change; a nil status removes it.
func (r *Reconciler) expect(name types.NamespacedName, t *templatecache.Template, status *v1beta1.VirtualMachineTemplateStatus) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if status == nil {
		delete(r.echoes, name)
		return
	}
	conditions := status.Conditions
	for _, kind := range []string{v1beta1.ConditionPolicyCompliant, v1beta1.ConditionSealed} {
		if others := meta.FindStatusCondition(t.Conditions(), kind); others != nil {
			conditions = append(slices.Clone(conditions), *others)
		}
	}
	r.echoes[name] = r.digest(t, conditions, templatecache.Digest(&status.TemplateSources))
}

// isNews reports whether a template differs from the last state that was written.
func (r *Reconciler) isNews(name types.NamespacedName, t *templatecache.Template) bool {
	r.mutex.Lock()
	expected, is := r.echoes[name]
	r.mutex.Unlock()
	return t == nil || !is || expected != r.digest(t, t.Conditions(), t.Sources)
}

// conditionTypes are the types of the conditions that are written or read here, except Ready.
var conditionTypes = []string{
	v1beta1.ConditionValid, v1beta1.ConditionSourcesReady, v1beta1.ConditionPolicyCompliant, v1beta1.ConditionDryRunSucceeded,
	v1beta1.ConditionDisksLent, v1beta1.ConditionBootSourceStale,
}

// digest returns a digest of a template with these conditions and sources. It does not contain the times of the conditions: stored times have
// whole seconds.
func (r *Reconciler) digest(t *templatecache.Template, conditions []metav1.Condition, sources uint64) uint64 {
	sum := fnv.New64a()
	// Writing to a hash does not fail.
	_, _ = fmt.Fprintf(sum, "%s %d %d %t ", t.UID, t.Generation, sources, lends(t))
	for _, kind := range append([]string{r.readyType()}, conditionTypes...) {
		if c := meta.FindStatusCondition(conditions, kind); c != nil {
			_, _ = fmt.Fprintf(sum, "%q %q %q %q %d ", c.Type, c.Status, c.Reason, c.Message, c.ObservedGeneration)
		}
	}
	return sum.Sum64()
}

// identify returns what identifies a source in an event; it has no UID if it does not exist.
func (r *Reconciler) identify(key sources.Key) *metav1.PartialObjectMetadata {
	object, _, _ := r.sources.Get(key)
	return &metav1.PartialObjectMetadata{
		TypeMeta: r.sources.TypeOf(key.Kind), ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: object.UID},
	}
}

func (r *Reconciler) forget(name types.NamespacedName) {
	r.index.set(name, nil)
	r.metrics.observe(name, nil, false)
	r.expect(name, nil, nil)
	r.mutex.Lock()
	delete(r.denied, name)
	delete(r.decided, name)
	delete(r.open, name)
	r.mutex.Unlock()
	if r.dryRuns != nil {
		r.dryRuns.forget(name)
	}
}
