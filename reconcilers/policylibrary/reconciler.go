package policylibrary

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/reconcilers/internal/policyapply"
)

const (
	// fieldManager owns the applied fields.
	fieldManager = "stencil-policy-library"
	// tick is the interval of reconciliations without a reported change.
	tick = 5 * time.Minute
)

// Reasons of events about the ConfigMap.
const (
	reasonApplied = "PolicyApplied"
	reasonRemoved = "PolicyRemoved"
	reasonForeign = "PolicyOfSomebodyElse"
	reasonFailed  = "PolicyNotApplied"
)

// Options are what a Reconciler needs.
type Options struct {
	// ConfigMap names the ConfigMap with the manifests, and the ClusterRole that owns the applied policies.
	ConfigMap types.NamespacedName
	// Reader reads from the API server itself, not from a cache.
	Reader client.Reader
	// Client writes the policies.
	Client client.Client
	// Recorder receives an event about the ConfigMap for every change.
	Recorder events.EventRecorder
}

// Reconciler applies policies. It has a single request, and Reconcile is never called concurrently.
type Reconciler struct {
	options Options
	applier *policyapply.Applier
}

// New returns a Reconciler.
func New(options Options) *Reconciler {
	owner := policyapply.Owner{Label: Label, Name: options.ConfigMap.Name, Annotation: digestAnnotation, FieldManager: fieldManager}
	return &Reconciler{options: options, applier: policyapply.New(owner, options.Reader, options.Client)}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	configMap, owner, err := r.release(ctx)
	if err != nil || configMap == nil {
		return reconcile.Result{}, err
	}
	manifests, problems := manifestsOf(configMap)
	failed := errors.Join(problems...)
	planned, err := r.applier.Plan(ctx, manifests)
	if err != nil {
		return reconcile.Result{}, errors.Join(failed, err)
	}
	if failed != nil {
		// A policy that cannot be read may still be enabled.
		planned.Remove = nil
	}
	for _, name := range planned.Foreign {
		r.options.Recorder.Eventf(configMap, nil, corev1.EventTypeWarning, reasonForeign, "Apply",
			"policy %s of the library is enabled, but a VirtualMachinePolicy of that name exists that the library did not create: rename or delete it", name)
	}
	for _, each := range planned.Apply {
		failed = errors.Join(failed, r.apply(ctx, configMap, owner, each))
	}
	for _, name := range planned.Remove {
		failed = errors.Join(failed, r.remove(ctx, configMap, name))
	}
	if failed != nil {
		return reconcile.Result{}, failed
	}
	return reconcile.Result{RequeueAfter: tick}, nil
}

// release reads the ConfigMap and the ClusterRole of the same name. It returns nil if one of them does not exist or is being deleted.
func (r *Reconciler) release(ctx context.Context) (*corev1.ConfigMap, *metav1.OwnerReference, error) {
	configMap := &corev1.ConfigMap{}
	err := r.options.Reader.Get(ctx, r.options.ConfigMap, configMap)
	if apierrors.IsNotFound(err) || err == nil && configMap.DeletionTimestamp != nil {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the ConfigMap of the policy library: %w", err)
	}
	role := &metav1.PartialObjectMetadata{}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	err = r.options.Reader.Get(ctx, types.NamespacedName{Name: configMap.Name}, role)
	if apierrors.IsNotFound(err) || err == nil && role.DeletionTimestamp != nil {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the ClusterRole %s: %w", configMap.Name, err)
	}
	return configMap, &metav1.OwnerReference{
		APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID,
	}, nil
}

func (r *Reconciler) apply(ctx context.Context, configMap *corev1.ConfigMap, owner *metav1.OwnerReference, m policyapply.Manifest) error {
	m.Object.SetOwnerReferences([]metav1.OwnerReference{*owner})
	changed, err := r.applier.Apply(ctx, m)
	if err != nil {
		// Only an invalid policy is reported by an event: right after an installation it is normal that the webhook cannot be called yet.
		if apierrors.IsInvalid(err) {
			r.options.Recorder.Eventf(configMap, nil, corev1.EventTypeWarning, reasonFailed, "Apply", "policy %s was not applied: %v", m.Name, errors.Unwrap(err))
		}
		return err
	}
	if changed != nil {
		logf.FromContext(ctx).Info("applied a policy of the library", "policy", m.Name)
		r.options.Recorder.Eventf(configMap, changed, corev1.EventTypeNormal, reasonApplied, "Apply", "policy %s was applied", m.Name)
	}
	return nil
}

func (r *Reconciler) remove(ctx context.Context, configMap *corev1.ConfigMap, name string) error {
	removed, err := r.applier.Remove(ctx, name)
	if err != nil {
		return fmt.Errorf("a disabled policy: %w", err)
	}
	if removed != nil {
		logf.FromContext(ctx).Info("deleted a policy of the library", "policy", name)
		r.options.Recorder.Eventf(configMap, removed, corev1.EventTypeNormal, reasonRemoved, "Delete", "policy %s was deleted: it is disabled", name)
	}
	return nil
}
