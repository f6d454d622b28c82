package policysource

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/reconcilers/internal/policyapply"
	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

const (
	// workers is more than one: a check of a registry that does not answer occupies a worker.
	workers = 4
	// Delays between attempts after a failure.
	shortestRetry = time.Second
	longestRetry  = time.Minute
)

// SetupWithManager adds the reconciler and its watches to the manager, which runs them on the leader. The watches hold metadata only.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	sources, policies := single.Metadata(v1alpha1.GroupVersion.WithKind("VirtualMachinePolicySource")), single.Metadata(policyapply.Kind)
	applied, err := labels.NewRequirement(v1alpha1.LabelPolicySource, selection.Exists, nil)
	if err != nil {
		return fmt.Errorf("policy sources: %w", err)
	}
	watches, err := single.Watches(mgr, mgr.GetScheme(), map[client.Object]cache.ByObject{
		sources: {}, policies: {Label: labels.NewSelector().Add(*applied)},
	})
	if err != nil {
		return fmt.Errorf("policy sources: %w", err)
	}
	// Statuses are written by this package and others.
	changed := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})
	ofPolicy := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, policy client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: policy.GetLabels()[v1alpha1.LabelPolicySource]}}}
	})
	return single.Add(mgr, single.Controller{
		Name: "policy-sources", Reconciler: r, Workers: workers, ShortestRetry: shortestRetry, LongestRetry: longestRetry,
	}, source.Kind(watches, sources, &handler.EnqueueRequestForObject{}, changed), source.Kind(watches, policies, ofPolicy, changed))
}
