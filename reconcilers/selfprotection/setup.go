package selfprotection

import (
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

// longestRetry is short: one object that cannot be restored must not delay the others for long.
const longestRetry = 5 * time.Second

// protectedLabels are on every object of the chart. If the label of an object is removed, the watch reports a deletion.
var protectedLabels = labels.Set{"app.kubernetes.io/part-of": "stencil"}

// SetupWithManager adds the reconciler and its watches to the manager, which runs them on the leader. The watches hold
// metadata only.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	watched := map[client.Object]cache.ByObject{}
	if r.options.ClusterRole != "" {
		watched[single.Metadata(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))] = cache.ByObject{
			Field: fields.OneTermEqualSelector(metav1.ObjectNameField, r.options.ClusterRole),
		}
	} else {
		watched[single.Metadata(corev1.SchemeGroupVersion.WithKind("ConfigMap"))] = single.Named(r.options.ConfigMap)
	}
	for _, kind := range kinds {
		watched[single.Metadata(admissionregistrationv1.SchemeGroupVersion.WithKind(kind))] = cache.ByObject{Label: protectedLabels.AsSelector()}
	}
	watches, err := single.Watches(mgr, mgr.GetScheme(), watched)
	if err != nil {
		return fmt.Errorf("self-protection: %w", err)
	}
	return single.Add(mgr, single.Controller{
		Name: "selfprotection", Reconciler: r, ShortestRetry: 100 * time.Millisecond, LongestRetry: longestRetry,
	}, single.OnEvents(reconcile.Request{NamespacedName: r.options.ConfigMap}, watches, watched)...)
}
