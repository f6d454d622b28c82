package revisions

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
	"github.com/vmstencil/stencil/revision"
)

const (
	controllerName = "revisions"

	// restInterval is the time between two passes if nothing is left to do, retryInterval if copies were skipped or failed.
	restInterval  = 10 * time.Minute
	retryInterval = time.Minute

	defaultRate      = 10
	defaultBackupTTL = 7 * 24 * time.Hour

	maximumNote = 1 << 10
)

var revisionMigrations = v1alpha1.GroupVersion.WithResource("revisionmigrations")

// Options are the dependencies of a Reconciler.
type Options struct {
	// Config is the manager's. ControllerRevisions are written as Account, a username that the manager may impersonate; if it is empty, only
	// mode Report is permitted.
	Config     *rest.Config
	Account    string
	Recorder   events.EventRecorder
	Registerer prometheus.Registerer
	Clock      clock.PassiveClock
}

// Reconciler reconciles the RevisionMigration.
type Reconciler struct {
	options Options
	cluster *cluster
	writer  *statuswriter.Writer
	metrics *metrics
}

// New returns a Reconciler. It fails if no client can be made of the configuration or if the metrics are already registered.
func New(o Options) (*Reconciler, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	cluster, err := newCluster(o.Config, o.Account, o.Clock)
	if err != nil {
		return nil, err
	}
	writer, err := statuswriter.New(o.Config)
	if err != nil {
		return nil, err
	}
	metrics, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	return &Reconciler{options: o, cluster: cluster, writer: writer, metrics: metrics}, nil
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	migration, err := r.read(ctx)
	if err != nil || migration == nil {
		return reconcile.Result{}, err
	}
	s, err := r.settings(migration)
	if err != nil {
		// The API server validates selectors only in part.
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	if s.writes() && r.options.Account == "" {
		s.mode = v1alpha1.RevisionMigrationReport
	}
	s.progress = func(done *result) bool { return r.report(ctx, migration, s, done) }
	done, err := r.cluster.run(ctx, s, r.notify)
	if err != nil {
		return reconcile.Result{}, err
	}
	if done.rolledBack+done.healed > 0 {
		// The inventory was read before.
		if done.inventory, err = r.cluster.gather(ctx, s.selector); err != nil {
			return reconcile.Result{}, err
		}
	}
	status := r.status(migration, s, done)
	r.metrics.observe(done, status)
	for _, failed := range done.failures {
		logf.FromContext(ctx).Info("stored instance type not migrated", "object", failed.String())
	}
	if err := r.writer.Apply(ctx, statuswriter.RevisionMigration(migration), fieldManager, status); err != nil {
		return reconcile.Result{}, err
	}
	if done.stopped {
		return reconcile.Result{RequeueAfter: shortestRetry}, nil
	}
	if len(done.failures)+len(done.skips) > 0 {
		return reconcile.Result{RequeueAfter: retryInterval}, nil
	}
	return reconcile.Result{RequeueAfter: restInterval}, nil
}

// read returns the RevisionMigration. If there is none, it creates one in mode Report, whose event is the next request.
func (r *Reconciler) read(ctx context.Context) (*v1alpha1.RevisionMigration, error) {
	client := r.cluster.objects.Resource(revisionMigrations)
	object, err := client.Get(ctx, v1alpha1.RevisionMigrationName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		created := &unstructured.Unstructured{}
		created.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RevisionMigration"))
		created.SetName(v1alpha1.RevisionMigrationName)
		// With a spec, the API server adds the other defaults.
		created.Object["spec"] = map[string]any{"mode": string(v1alpha1.RevisionMigrationReport)}
		object, err = client.Create(ctx, created, metav1.CreateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return nil, fmt.Errorf("reading the RevisionMigration: %w", err)
	}
	if object.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	migration := &v1alpha1.RevisionMigration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, migration); err != nil {
		return nil, fmt.Errorf("decoding the RevisionMigration: %w", err)
	}
	return migration, nil
}

func (r *Reconciler) settings(m *v1alpha1.RevisionMigration) (settings, error) {
	s := settings{mode: m.Spec.Mode, namespaces: m.Spec.Namespaces, selector: labels.Everything(), rate: defaultRate}
	if s.mode == "" {
		s.mode = v1alpha1.RevisionMigrationReport
	}
	if m.Spec.Rate != nil {
		s.rate = *m.Spec.Rate
	}
	lifetime := defaultBackupTTL
	if m.Spec.BackupTTL != nil {
		lifetime = m.Spec.BackupTTL.Duration
	}
	s.oldest = r.options.Clock.Now().Add(-lifetime)
	if m.Spec.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(m.Spec.Selector)
		if err != nil {
			return settings{}, fmt.Errorf("spec.selector: %w", err)
		}
		s.selector = selector
	}
	return s, nil
}

// report writes the status of a running pass. It returns false if the RevisionMigration has changed, so that the pass must end.
func (r *Reconciler) report(ctx context.Context, m *v1alpha1.RevisionMigration, s settings, done *result) bool {
	log := logf.FromContext(ctx)
	current, err := r.read(ctx)
	if err != nil {
		log.Error(err, "progress not reported")
		return true
	}
	if current == nil || current.Generation != m.Generation {
		return false
	}
	status := r.status(m, s, done)
	running, _ := statuswriter.Transition(m.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionPassComplete, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPassRunning, ObservedGeneration: m.Generation,
		Message: fmt.Sprintf("Copies are being processed in mode %s.", s.mode),
	}, r.options.Clock.Now())
	meta.SetStatusCondition(&status.Conditions, running)
	if err := r.writer.Apply(ctx, statuswriter.RevisionMigration(m), fieldManager, status); err != nil {
		log.Error(err, "progress not reported")
	}
	return true
}

// notify records an event about the owner of a replaced copy.
func (r *Reconciler) notify(e *entry) {
	r.metrics.migrated.Inc()
	for _, owner := range e.owners {
		about := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: owner.Name, UID: owner.UID}}
		about.SetGroupVersionKind(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
		r.options.Recorder.Eventf(about, nil, corev1.EventTypeNormal, "StoredInstancetypeMigrated", "MigrateRevision", "%s",
			excerpt.Of(fmt.Sprintf("ControllerRevision %s holds its %s %s in version %s now; nothing else of it has changed", e.Name, e.of.Kind, e.of.Name, revision.Target), maximumNote))
	}
}

// status returns the whole status.
func (r *Reconciler) status(m *v1alpha1.RevisionMigration, s settings, done *result) v1alpha1.RevisionMigrationStatus {
	now := metav1.NewTime(r.options.Clock.Now())
	status := describe(done)
	status.ObservedGeneration, status.Target, status.LastTime = m.Generation, string(revision.Target), &now
	for _, condition := range []metav1.Condition{noOldVersions(done), complete(m.Spec.Mode, s, done)} {
		condition.ObservedGeneration = m.Generation
		condition, _ = statuswriter.Transition(m.Status.Conditions, condition, now.Time)
		status.Conditions = append(status.Conditions, condition)
	}
	slices.SortFunc(status.Findings, compareRevisionFindings)
	return status
}
