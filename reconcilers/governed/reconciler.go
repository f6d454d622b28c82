package governed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/reconcilers/internal/single"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
)

const (
	controllerName = "governed"
	fieldManager   = client.FieldOwner("stencil-governed")

	reasonGoverned   = "Governed"
	reasonUngoverned = "NotGovernedAnyMore"
	actionLabel      = "LabelNamespace"

	// delay combines changes in quick succession, such as all namespaces at the start. A new namespace is undecided for at least as long.
	delay = 20 * time.Millisecond
	// Delays between attempts after a failure. A namespace that cannot be written must not delay the others for long.
	shortestRetry = 50 * time.Millisecond
	longestRetry  = 10 * time.Second
	// parallel is the number of namespaces that are written concurrently.
	parallel = 16
)

// Options are what a Reconciler needs.
type Options struct {
	// Coverage returns the approvals and the namespaces.
	Coverage *coverage.Watch
	// Reader reads the index from the API server itself, not from a cache.
	Reader client.Reader
	// Client patches namespaces and the index.
	Client Writer
	// Statuses writes the condition Active.
	Statuses *statuswriter.Writer
	// Recorder receives an event about every change of a namespace's label.
	Recorder events.EventRecorder
	// Namespace is Stencil's own, which contains the index.
	Namespace string
}

// Writer is the part of client.Client that the Reconciler writes with.
type Writer interface {
	Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error
}

// Reconciler writes labels, annotations and the index. It has a single request.
type Reconciler struct {
	options Options
	// watched reads the metadata of the index; index is its content when it was last read or written.
	watched client.Reader
	index   writtenIndex
}

// New returns a Reconciler.
func New(options Options) *Reconciler { return &Reconciler{options: options} }

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	snapshot, err := r.options.Coverage.Snapshot(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	var approvals []*approval.Approval
	for _, a := range snapshot.Approvals {
		approvals = append(approvals, a.Approval)
	}
	index := approval.NamespaceIndex(approvals)
	indexed, err := r.updateIndex(ctx, index)
	if err != nil {
		return reconcile.Result{}, err
	}
	decided, activeBefore := decide(snapshot), activeOf(snapshot.Approvals)
	reported, err := r.report(ctx, snapshot.Approvals, decided, pendingOf(decided.changes, activeBefore), nil)
	if err != nil {
		return reconcile.Result{}, err
	}
	failed, err := r.applyAll(ctx, decided.changes)
	if err == nil && !indexed && len(failed) == 0 {
		err = r.createIndex(ctx, index)
	}
	_, unreported := r.report(ctx, snapshot.Approvals, decided, pendingOf(failed, activeBefore), reported)
	err = errors.Join(err, unreported)
	if err == nil && len(failed) > 0 {
		return reconcile.Result{RequeueAfter: shortestRetry}, nil
	}
	return reconcile.Result{}, err
}

// applyAll writes the changes and returns those that were not written, because of the error or because the namespace has changed since it
// was read. The watch reports such a namespace.
func (r *Reconciler) applyAll(ctx context.Context, changes []change) ([]change, error) {
	var (
		mutex    sync.Mutex
		failed   []change
		failures []error
		group    sync.WaitGroup
	)
	next := make(chan change)
	for range min(parallel, len(changes)) {
		group.Go(func() {
			for c := range next {
				written, err := r.apply(ctx, c)
				if written {
					continue
				}
				mutex.Lock()
				failed = append(failed, c)
				failures = append(failures, err)
				mutex.Unlock()
			}
		})
	}
	for _, c := range changes {
		next <- c
	}
	close(next)
	group.Wait()
	return failed, errors.Join(failures...)
}

// apply writes the label and the annotation. The resource version makes it fail when the labels have changed since the decision.
func (r *Reconciler) apply(ctx context.Context, c change) (written bool, err error) {
	var annotation any
	if c.state.Approvals != "" {
		annotation = c.state.Approvals
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": c.resourceVersion,
		"labels":          map[string]any{v1alpha1.LabelGoverned: c.state.Governed},
		"annotations":     map[string]any{v1alpha1.AnnotationApprovals: annotation},
	}})
	if err != nil {
		return false, fmt.Errorf("encoding the label of namespace %s: %w", c.namespace, err)
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.SetName(c.namespace)
	err = r.options.Client.Patch(ctx, namespace, client.RawPatch(types.MergePatchType, patch), fieldManager)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsConflict(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("labelling namespace %s: %w", c.namespace, err)
	}
	note := c.note()
	if note == "" {
		return true, nil
	}
	reason := reasonGoverned
	if len(c.approvals) == 0 {
		reason = reasonUngoverned
	}
	logf.FromContext(ctx).Info("changed the label of a namespace", "namespace", c.namespace, "governed", c.state.Governed, "approvals", namesOf(c.approvals))
	r.options.Recorder.Eventf(namespace, nil, corev1.EventTypeNormal, reason, actionLabel, "%s", note)
	return true, nil
}

// SetupWithManager adds the reconciler to the manager, which runs it on the leader.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	watches, err := watchIndex(mgr, r.options.Namespace)
	if err != nil {
		return err
	}
	r.watched = watches
	index := source.Kind(watches, indexMetadata(), single.OnEvent(coverage.Cluster))
	sources := append([]source.Source{index}, r.options.Coverage.Sources(delay)...)
	return single.Add(mgr, single.Controller{
		Name: controllerName, Reconciler: r, ShortestRetry: shortestRetry, LongestRetry: longestRetry,
	}, sources...)
}
