package revisions

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

const (
	// Delays between attempts after a failure.
	shortestRetry = time.Second
	longestRetry  = time.Minute
)

// SetupWithManager adds the reconciler to the manager, which runs it on the leader.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	migrations := single.Metadata(v1alpha1.GroupVersion.WithKind("RevisionMigration"))
	watches, err := single.Watches(mgr, mgr.GetScheme(), map[client.Object]cache.ByObject{migrations: {}})
	if err != nil {
		return fmt.Errorf("watching the RevisionMigration: %w", err)
	}
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: v1alpha1.RevisionMigrationName}}
	// Its status, which this reconciler writes, does not change its generation.
	changes := source.Kind(watches, migrations, single.OnEvent(request), predicate.GenerationChangedPredicate{})
	return single.Add(mgr, single.Controller{Name: controllerName, Reconciler: r, ShortestRetry: shortestRetry, LongestRetry: longestRetry}, single.AtStart(request), changes)
}
