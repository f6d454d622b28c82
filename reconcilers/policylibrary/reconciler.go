package policylibrary

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// fieldManager owns the applied fields.
const fieldManager = "stencil-policy-library"

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
	// applied holds the generation of each policy after it was applied.
	applied map[string]int64
}

// New returns a Reconciler.
func New(options Options) *Reconciler {
	return &Reconciler{options: options, applied: map[string]int64{}}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	configMap, owner, err := r.release(ctx)
	if err != nil || configMap == nil {
		return reconcile.Result{}, err
	}
	manifests, problems := manifestsOf(configMap)
	failed := errors.Join(problems...)
	switchedOn := make([]enabled, 0, len(manifests))
	byName := map[string]manifest{}
	for _, each := range manifests {
		switchedOn = append(switchedOn, each.enabled)
		byName[each.name] = each
	}
	stored, err := r.stored(ctx, switchedOn)
	if err != nil {
		return reconcile.Result{}, errors.Join(failed, err)
	}
	planned := decide(switchedOn, stored)
	if failed != nil {
		// A policy that cannot be read may still be enabled.
		planned.remove = nil
	}
	for _, name := range planned.foreign {
		r.options.Recorder.Eventf(configMap, nil, corev1.EventTypeWarning, reasonForeign, "Apply",
			"policy %s of the library is enabled, but a VirtualMachinePolicy of that name exists that the library did not create: rename or delete it", name)
	}
	for _, name := range planned.apply {
		failed = errors.Join(failed, r.apply(ctx, configMap, owner, byName[name]))
	}
	for _, name := range planned.remove {
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

// stored reads the policies that are enabled or carry the label.
func (r *Reconciler) stored(ctx context.Context, switchedOn []enabled) ([]found, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.options.Reader.List(ctx, list, client.MatchingLabels{Label: r.options.ConfigMap.Name}); err != nil {
		return nil, fmt.Errorf("listing the policies of the library: %w", err)
	}
	var all []found
	seen := map[string]bool{}
	for i := range list.Items {
		seen[list.Items[i].Name] = true
		all = append(all, r.found(&list.Items[i], true))
	}
	for _, want := range switchedOn {
		if seen[want.name] {
			continue
		}
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		err := r.options.Reader.Get(ctx, types.NamespacedName{Name: want.name}, object)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading policy %s: %w", want.name, err)
		}
		all = append(all, r.found(object, object.Labels[Label] == r.options.ConfigMap.Name))
	}
	return all, nil
}

func (r *Reconciler) found(object *metav1.PartialObjectMetadata, ours bool) found {
	return found{
		name: object.Name, ours: ours, generation: object.Generation,
		digest: object.Annotations[digestAnnotation], applied: r.applied[object.Name],
	}
}

func (r *Reconciler) apply(ctx context.Context, configMap *corev1.ConfigMap, owner *metav1.OwnerReference, m manifest) error {
	object := m.object.DeepCopy()
	object.SetOwnerReferences([]metav1.OwnerReference{*owner})
	err := r.options.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		// Only an invalid policy is reported by an event: right after an installation it is normal that the webhook cannot be called yet.
		if apierrors.IsInvalid(err) {
			r.options.Recorder.Eventf(configMap, nil, corev1.EventTypeWarning, reasonFailed, "Apply", "policy %s was not applied: %v", m.name, err)
		}
		return fmt.Errorf("applying policy %s: %w", m.name, err)
	}
	before := r.applied[m.name]
	if r.applied[m.name] = object.GetGeneration(); before != object.GetGeneration() {
		logf.FromContext(ctx).Info("applied a policy of the library", "policy", m.name)
		r.options.Recorder.Eventf(configMap, object, corev1.EventTypeNormal, reasonApplied, "Apply", "policy %s was applied", m.name)
	}
	return nil
}

func (r *Reconciler) remove(ctx context.Context, configMap *corev1.ConfigMap, name string) error {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	object.SetName(name)
	delete(r.applied, name)
	if err := r.options.Client.Delete(ctx, object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("deleting policy %s, which is disabled: %w", name, err)
	}
	logf.FromContext(ctx).Info("deleted a policy of the library", "policy", name)
	r.options.Recorder.Eventf(configMap, object, corev1.EventTypeNormal, reasonRemoved, "Delete", "policy %s was deleted: it is disabled", name)
	return nil
}
