package selfprotection

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// ManifestsAnnotation is the annotation of a ClusterRole that holds what a ConfigMap has as data, as YAML: where the installer of Stencil creates no
// ConfigMaps.
const ManifestsAnnotation = "stencil.kubevirt.io/protected-objects"

// source reads the ConfigMap with the manifests, or the ClusterRole in the form of such a ConfigMap. It returns nil if it does not exist or is being
// deleted.
func (r *Reconciler) source(ctx context.Context) (*corev1.ConfigMap, error) {
	configMap := &corev1.ConfigMap{}
	var err error
	if r.options.ClusterRole != "" {
		configMap, err = r.clusterRole(ctx)
	} else {
		err = r.options.Reader.Get(ctx, r.options.ConfigMap, configMap)
	}
	if apierrors.IsNotFound(err) || err == nil && configMap.DeletionTimestamp != nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the manifests of the protected objects: %w", err)
	}
	return configMap, nil
}

// clusterRole reads the ClusterRole with the manifests. It is also the owner of created objects.
func (r *Reconciler) clusterRole(ctx context.Context) (*corev1.ConfigMap, error) {
	role := &metav1.PartialObjectMetadata{}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	if err := r.options.Reader.Get(ctx, types.NamespacedName{Name: r.options.ClusterRole}, role); err != nil {
		return nil, err
	}
	configMap := &corev1.ConfigMap{TypeMeta: role.TypeMeta, ObjectMeta: role.ObjectMeta}
	if err := yaml.Unmarshal([]byte(role.Annotations[ManifestsAnnotation]), &configMap.Data); err != nil {
		return nil, fmt.Errorf("decoding annotation %s: %w", ManifestsAnnotation, err)
	}
	metav1.SetMetaDataAnnotation(&configMap.ObjectMeta, OwnerAnnotation, role.Name)
	return configMap, nil
}

// trusted returns the caBundle of the webhooks in the manifests; nil if another component writes it.
func (r *Reconciler) trusted(ctx context.Context) (any, error) {
	if r.options.Trust == "" {
		return nil, nil
	}
	caBundle, err := r.caBundle(ctx, r.options.Trust)
	if err == nil && caBundle == nil {
		err = errors.New("ValidatingWebhookConfiguration " + r.options.Trust + " has no caBundle yet")
	}
	return caBundle, err
}

// caBundle returns the caBundle of a ValidatingWebhookConfiguration; nil if it has none.
func (r *Reconciler) caBundle(ctx context.Context, name string) (any, error) {
	configuration := identity{"ValidatingWebhookConfiguration", name}.empty()
	if err := r.options.Reader.Get(ctx, types.NamespacedName{Name: name}, configuration); err != nil {
		return nil, fmt.Errorf("reading the caBundle of the protected objects: %w", err)
	}
	for _, webhook := range webhooksOf(configuration) {
		if caBundle, found := caBundleOf(webhook); found {
			return caBundle, nil
		}
	}
	return nil, nil
}
