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

// Cluster is the one request of a reconciler that always looks at the whole cluster.
var Cluster = reconcile.Request{NamespacedName: types.NamespacedName{Name: "cluster"}}

// Sources returns event sources for a reconciler that looks at the whole cluster whatever has changed: when an approval comes
// or goes or its spec changes, and when a namespace comes or goes or what Stencil reads or keeps of it changes. The request comes the given
// delay after the first of several changes.
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

// delayed answers every event with the one request, after a delay.
func delayed(delay time.Duration) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc:  func(_ context.Context, _ event.CreateEvent, q queue) { q.AddAfter(Cluster, delay) },
		UpdateFunc:  func(_ context.Context, _ event.UpdateEvent, q queue) { q.AddAfter(Cluster, delay) },
		DeleteFunc:  func(_ context.Context, _ event.DeleteEvent, q queue) { q.AddAfter(Cluster, delay) },
		GenericFunc: func(_ context.Context, _ event.GenericEvent, q queue) { q.AddAfter(Cluster, delay) },
	}
}

// specChanged tells whether the spec is another, or the object is: a deletion that a watch has missed looks like an update.
func specChanged(e event.UpdateEvent) bool {
	return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
}

// approvalsChanged tells whether the annotation that approvals are written to is another.
func approvalsChanged(e event.UpdateEvent) bool {
	const key = v1alpha1.AnnotationApprovals
	return e.ObjectOld.GetAnnotations()[key] != e.ObjectNew.GetAnnotations()[key]
}
