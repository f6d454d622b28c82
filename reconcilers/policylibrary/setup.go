package policylibrary

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/reconcilers/internal/policyapply"
	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

// SetupWithManager adds the reconciler and its watches to the manager, which runs them
// on the leader. The watches hold metadata only.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	watched := map[client.Object]cache.ByObject{
		single.Metadata(corev1.SchemeGroupVersion.WithKind("ConfigMap")): single.Named(r.options.ConfigMap),
		single.Metadata(policyapply.Kind):                                {Label: labels.Set{Label: r.options.ConfigMap.Name}.AsSelector()},
	}
	watches, err := single.Watches(mgr, mgr.GetScheme(), watched)
	if err != nil {
		return fmt.Errorf("the policy library: %w", err)
	}
	// Right after an installation, calls fail until the webhook is reachable.
	return single.Add(mgr, single.Controller{
		Name: "policylibrary", Reconciler: r, ShortestRetry: 250 * time.Millisecond, LongestRetry: 30 * time.Second,
	}, single.OnEvents(reconcile.Request{NamespacedName: r.options.ConfigMap}, watches, watched)...)
}
