package governed

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

// writtenIndex is the index as it was last read or written, with its resource version at that time.
type writtenIndex struct {
	resourceVersion string
	data            map[string]string
}

// updateIndex writes the index if it differs. It returns false if the index does not exist. The size of the index grows with the approvals,
// so it is read only if it must change or the watch reports another resource version.
func (r *Reconciler) updateIndex(ctx context.Context, index map[string]string) (exists bool, err error) {
	name := types.NamespacedName{Namespace: r.options.Namespace, Name: v1alpha1.ApprovalIndexName}
	watched := indexMetadata()
	err = r.watched.Get(ctx, name, watched)
	if err == nil && watched.GetResourceVersion() == r.index.resourceVersion && maps.Equal(r.index.data, index) {
		return true, nil
	}
	stored := &corev1.ConfigMap{}
	err = r.options.Reader.Get(ctx, name, stored)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading ConfigMap %s: %w", v1alpha1.ApprovalIndexName, err)
	case !maps.Equal(stored.Data, index):
		// A server-side apply would leave the keys that another user has added.
		patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/data", "value": index}})
		if err != nil {
			return true, fmt.Errorf("encoding ConfigMap %s: %w", v1alpha1.ApprovalIndexName, err)
		}
		if err := r.options.Client.Patch(ctx, stored, client.RawPatch(types.JSONPatchType, patch), fieldManager); err != nil {
			return true, fmt.Errorf("writing ConfigMap %s: %w", v1alpha1.ApprovalIndexName, err)
		}
	}
	r.index = writtenIndex{resourceVersion: stored.ResourceVersion, data: index}
	return true, nil
}

// createIndex creates the index. A role can limit a creation to a name only if it is a server-side apply.
func (r *Reconciler) createIndex(ctx context.Context, index map[string]string) error {
	configMap := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.options.Namespace, Name: v1alpha1.ApprovalIndexName,
			Labels: map[string]string{"app.kubernetes.io/part-of": "stencil"},
		},
		Data: index,
	}
	raw, err := json.Marshal(configMap)
	if err != nil {
		return fmt.Errorf("encoding ConfigMap %s: %w", v1alpha1.ApprovalIndexName, err)
	}
	err = r.options.Client.Patch(ctx, configMap, client.RawPatch(types.ApplyPatchType, raw), fieldManager, client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s: %w", v1alpha1.ApprovalIndexName, err)
	}
	return nil
}

// indexMetadata returns an object for watching the metadata of the index.
func indexMetadata() client.Object {
	return single.Metadata(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
}

// watchIndex returns a watch of the metadata of the index, which is in this namespace.
func watchIndex(mgr manager.Manager, namespace string) (cache.Cache, error) {
	watches, err := single.Watches(mgr, mgr.GetScheme(), map[client.Object]cache.ByObject{
		indexMetadata(): single.Named(types.NamespacedName{Namespace: namespace, Name: v1alpha1.ApprovalIndexName}),
	})
	if err != nil {
		return nil, fmt.Errorf("watching the index of approvals: %w", err)
	}
	return watches, nil
}
