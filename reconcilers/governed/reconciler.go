package governed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/reconcilers/coverage"
	"github.com/vmstencil/stencil/reconcilers/single"
)

const (
	controllerName = "governed"
	fieldManager   = client.FieldOwner("stencil-governed")

	reasonGoverned   = "Governed"
	reasonUngoverned = "NotGovernedAnyMore"
	actionLabel      = "LabelNamespace"

	// delay gathers changes that come together, such as all namespaces at the start.
	delay = 100 * time.Millisecond
	// Delays between attempts after a failure. What one namespace refuses must not hold up the others for long.
	shortestRetry = 100 * time.Millisecond
	longestRetry  = 10 * time.Second
)

// Options are what a Reconciler needs.
type Options struct {
	// Coverage knows the approvals and the namespaces.
	Coverage *coverage.Watch
	// Client patches namespaces.
	Client Patcher
	// Recorder receives an event about every namespace whose label changes.
	Recorder events.EventRecorder
}

// Patcher is the part of client.Client that writes the namespaces.
type Patcher interface {
	Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error
}

// Reconciler keeps the labels and annotations. There is only ever one request to it.
type Reconciler struct{ options Options }

// New returns a Reconciler.
func New(options Options) *Reconciler { return &Reconciler{options} }

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	snapshot, err := r.options.Coverage.Snapshot(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	var failures []error
	for _, each := range decide(snapshot.Namespaces, snapshot.Governed()) {
		failures = append(failures, r.apply(ctx, each))
	}
	return reconcile.Result{}, errors.Join(failures...)
}

// apply sets or removes the label and the annotation, whatever else has changed in the namespace meanwhile.
func (r *Reconciler) apply(ctx context.Context, c change) error {
	var label, annotation any
	if c.governed {
		label = v1alpha1.LabelGovernedValue
	}
	if c.approved != "" {
		annotation = c.approved
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"labels":      map[string]any{v1alpha1.LabelGoverned: label},
		"annotations": map[string]any{v1alpha1.AnnotationApprovedTemplates: annotation},
	}})
	if err != nil {
		return fmt.Errorf("encoding the label of namespace %s: %w", c.namespace, err)
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.SetName(c.namespace)
	err = r.options.Client.Patch(ctx, namespace, client.RawPatch(types.MergePatchType, patch), fieldManager)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("labelling namespace %s: %w", c.namespace, err)
	}
	if !c.relabelled {
		return nil
	}
	reason := reasonUngoverned
	if c.governed {
		reason = reasonGoverned
	}
	logf.FromContext(ctx).Info("changed the label of a namespace", "namespace", c.namespace, "governed", c.governed, "approvals", c.by)
	r.options.Recorder.Eventf(namespace, nil, corev1.EventTypeNormal, reason, actionLabel, "%s", c.note())
	return nil
}

// SetupWithManager adds the reconciler to the manager, which runs it on the leader.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	return single.Add(mgr, single.Controller{
		Name: controllerName, Reconciler: r, ShortestRetry: shortestRetry, LongestRetry: longestRetry,
	}, r.options.Coverage.Sources(delay)...)
}
