package exemptions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/internal/exemption"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
)

const (
	// fieldManager owns the subjects of the binding and the condition.
	fieldManager = "stencil-exemptions"

	// Intervals between two reads of the objects of KubeVirt and CDI: after all configured accounts were found, and otherwise. A request
	// within freshness of the last read uses its result.
	longInterval  = time.Minute
	shortInterval = 10 * time.Second
	freshness     = 2 * time.Second
)

// Reasons of events about the ClusterRoleBinding.
const (
	reasonChanged = "ExemptUsersChanged"
	reasonUnknown = "ExemptUsersUnknown"
	actionBind    = "BindExemptUsers"
)

// Approvals returns the approvals; coverage.Watch implements it.
type Approvals interface {
	Snapshot(ctx context.Context) (coverage.Snapshot, error)
}

// Statuses writes conditions; statuswriter.Writer implements it.
type Statuses interface {
	Apply(ctx context.Context, object statuswriter.Object, owner string, status any) error
}

// Options are what a Reconciler needs.
type Options struct {
	// Names are the configured names.
	Names exemption.Names
	// Binding is the name of the ClusterRoleBinding to write.
	Binding string
	// Client reads and writes without a cache.
	Client kubernetes.Interface
	// KubeVirts lists KubeVirt objects.
	KubeVirts dynamic.Interface
	Approvals Approvals
	Statuses  Statuses
	// Recorder receives an event about the ClusterRoleBinding when exempt accounts or unknown names change.
	Recorder   events.EventRecorder
	Registerer prometheus.Registerer
	// Now returns the current time. Default: time.Now.
	Now func() time.Time
}

// Reconciler writes the binding. It has a single request, and Reconcile is never called concurrently.
type Reconciler struct {
	options Options
	metrics metrics
	// last is the last plan that was applied, at refreshedAt.
	last        plan
	refreshedAt time.Time
	// reported is the text of the last event about unknown names.
	reported string
}

// New returns a Reconciler. It fails when the metrics are registered already.
func New(o Options) (*Reconciler, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Reconciler{options: o, metrics: newMetrics()}
	if o.Registerer != nil {
		for _, each := range []prometheus.Collector{r.metrics.found, r.metrics.unknown} {
			if err := o.Registerer.Register(each); err != nil {
				return nil, fmt.Errorf("registering metrics of exempt users: %w", err)
			}
		}
	}
	return r, nil
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	fresh := !r.refreshedAt.IsZero() && r.options.Now().Sub(r.refreshedAt) < freshness
	if !fresh {
		if err := r.refresh(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := r.report(ctx, r.last); err != nil {
		return reconcile.Result{}, err
	}
	interval := longInterval
	switch {
	case fresh:
		// The cluster may have changed since the last read.
		interval = freshness
	case !r.last.complete:
		interval = shortInterval
	}
	return reconcile.Result{RequeueAfter: interval}, nil
}

// refresh gathers, decides and writes the binding.
func (r *Reconciler) refresh(ctx context.Context) error {
	installed, existing, err := r.gather(ctx)
	if err != nil {
		return err
	}
	decided := decide(r.options.Names, installed, existing)
	missing, err := r.bind(ctx, decided.exempt)
	if err != nil {
		return err
	}
	if missing {
		decided = plan{problems: []problem{{r.options.Binding, "this ClusterRoleBinding does not exist, so no controller of KubeVirt or CDI is exempt: install the chart again"}}}
	}
	r.metrics.report(decided)
	note := ""
	if len(decided.problems) > 0 {
		note = decided.note()
	}
	if note != r.reported {
		r.reported = note
		logf.FromContext(ctx).Info("unknown exempt users changed", "problems", note)
		if note != "" {
			r.event(corev1.EventTypeWarning, reasonUnknown, note)
		}
	}
	r.last, r.refreshedAt = decided, r.options.Now()
	return nil
}

// bind sets the subjects of the binding to the accounts. It returns true if the binding does not exist.
func (r *Reconciler) bind(ctx context.Context, accounts []exemption.Account) (missing bool, err error) {
	bindings := r.options.Client.RbacV1().ClusterRoleBindings()
	stored, err := bindings.Get(ctx, r.options.Binding, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading ClusterRoleBinding %s: %w", r.options.Binding, err)
	}
	subjects, users := []rbacv1.Subject{}, []string{}
	for _, account := range accounts {
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name})
		users = append(users, account.User())
	}
	if equality.Semantic.DeepEqual(stored.Subjects, subjects) {
		return false, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": stored.ResourceVersion}, "subjects": subjects})
	if err != nil {
		return false, fmt.Errorf("encoding the subjects of ClusterRoleBinding %s: %w", r.options.Binding, err)
	}
	if _, err := bindings.Patch(ctx, r.options.Binding, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
		return false, fmt.Errorf("writing the subjects of ClusterRoleBinding %s: %w", r.options.Binding, err)
	}
	logf.FromContext(ctx).Info("changed the exempt users", "users", users)
	r.event(corev1.EventTypeNormal, reasonChanged, fmt.Sprintf("%d service accounts of KubeVirt and CDI are exempt from TemplateApprovals", len(users)))
	return false, nil
}

func (r *Reconciler) event(severity, reason, note string) {
	binding := &metav1.PartialObjectMetadata{}
	binding.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"))
	binding.SetName(r.options.Binding)
	// The note of an event is limited to 1 KiB.
	const room = 1000
	if len(note) > room {
		note = note[:room] + "…"
	}
	r.options.Recorder.Eventf(binding, nil, severity, reason, actionBind, "%s", note)
}

// report writes the condition of each approval where it differs from the stored one.
func (r *Reconciler) report(ctx context.Context, p plan) error {
	snapshot, err := r.options.Approvals.Snapshot(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, a := range snapshot.Approvals {
		next, changed := statuswriter.Transition(a.Object.Status.Conditions, p.condition(a.Generation()), r.options.Now())
		if changed {
			failures = append(failures, r.options.Statuses.Apply(ctx, statuswriter.Approval(a.Object), fieldManager, map[string]any{"conditions": []metav1.Condition{next}}))
		}
	}
	return errors.Join(failures...)
}
