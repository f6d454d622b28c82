package exemptions

import (
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

// Delays after an event, which combine events in quick succession, and after failures.
const (
	delay         = 20 * time.Millisecond
	shortestRetry = 250 * time.Millisecond
	longestRetry  = 30 * time.Second
)

// Sources returns the event source of the approvals; coverage.Watch implements it.
type Sources interface {
	ApprovalSource(delay time.Duration) source.Source
}

// SetupWithManager adds the reconciler to the manager, which runs it on the leader. It runs at the start, after an interval, and when the
// binding or an approval changes.
func (r *Reconciler) SetupWithManager(mgr manager.Manager, approvals Sources) error {
	binding := single.Metadata(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"))
	watches, err := single.Watches(mgr, mgr.GetScheme(), map[client.Object]cache.ByObject{
		binding: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, r.options.Binding)},
	})
	if err != nil {
		return fmt.Errorf("exempt users: %w", err)
	}
	return single.Add(mgr, single.Controller{
		Name: "exemptions", Reconciler: r, ShortestRetry: shortestRetry, LongestRetry: longestRetry,
	}, approvals.ApprovalSource(delay), single.AtStart(coverage.Cluster), source.Kind(watches, binding, single.OnEvent(coverage.Cluster)))
}
