package coverage

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// Cluster is the single request of a reconciler that works on the whole cluster.
var Cluster = reconcile.Request{NamespacedName: types.NamespacedName{Name: "cluster"}}

// Sources returns event sources for a reconciler that works on the whole cluster. They report when an approval is created or deleted or its
// spec changes, and when a namespace is created or deleted or its labels or its annotation of approvals change. The request is added the
// given delay after the first of several changes.
func (w *Watch) Sources(delay time.Duration) []source.Source {
	return []source.Source{
		w.ApprovalSource(delay),
		source.Kind[client.Object](w.cache, namespaceMetadata(), delayed(delay), predicate.Or(predicate.LabelChangedPredicate{}, predicate.Funcs{UpdateFunc: approvalsChanged})),
	}
}

// ApprovalSource returns the event source of approvals alone.
func (w *Watch) ApprovalSource(delay time.Duration) source.Source {
	return source.Kind[client.Object](w.cache, &v1alpha1.TemplateApproval{}, delayed(delay), predicate.Funcs{UpdateFunc: specChanged})
}

// delayed adds the single request for every event, after a delay.
func delayed(delay time.Duration) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc:  func(_ context.Context, _ event.CreateEvent, q queue) { q.AddAfter(Cluster, delay) },
		UpdateFunc:  func(_ context.Context, _ event.UpdateEvent, q queue) { q.AddAfter(Cluster, delay) },
		DeleteFunc:  func(_ context.Context, _ event.DeleteEvent, q queue) { q.AddAfter(Cluster, delay) },
		GenericFunc: func(_ context.Context, _ event.GenericEvent, q queue) { q.AddAfter(Cluster, delay) },
	}
}

// specChanged reports whether the spec has changed or the object was replaced: a deletion that a watch has missed is reported as an update.
func specChanged(e event.UpdateEvent) bool {
	return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
}

// approvalsChanged reports whether the annotation of approvals has changed.
func approvalsChanged(e event.UpdateEvent) bool {
	const key = v1alpha1.AnnotationApprovals
	return e.ObjectOld.GetAnnotations()[key] != e.ObjectNew.GetAnnotations()[key]
}
