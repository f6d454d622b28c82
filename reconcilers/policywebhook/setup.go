package policywebhook

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

// stencilLabels are on every object of the chart.
var stencilLabels = labels.Set{"app.kubernetes.io/part-of": "stencil"}

// SetupWithManager adds the reconciler and its watch to the manager, which runs them on the leader.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("filling the scheme: %w", err)
	}
	// One watch for both configurations preserves the order of their events.
	watch, err := single.Watches(mgr, scheme, map[client.Object]cache.ByObject{
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: {Label: stencilLabels.AsSelector()},
	})
	if err != nil {
		return fmt.Errorf("the webhook configuration of the policies: %w", err)
	}
	r.reader = watch
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: r.options.Configuration}}
	toTheOne := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, object *admissionregistrationv1.ValidatingWebhookConfiguration) []reconcile.Request {
		if object.Name != r.options.Configuration && object.Name != r.options.Reference {
			return nil
		}
		return []reconcile.Request{request}
	})
	return single.Add(mgr,
		single.Controller{Name: "policy-webhook", Reconciler: r, ShortestRetry: 100 * time.Millisecond, LongestRetry: 10 * time.Second},
		single.AtStart(request),
		single.OnChange(request, 0, r.options.Policies.Changed),
		source.Kind(watch, &admissionregistrationv1.ValidatingWebhookConfiguration{}, toTheOne))
}
