package selfprotection

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// controllerName names the controller in logs and in controller-runtime's metrics.
const controllerName = "selfprotection"

// Delays between attempts after a failure.
const (
	shortestRetry = 100 * time.Millisecond
	longestRetry  = 5 * time.Second
)

// protectedLabels are on every object of the chart. Somebody who takes the label away makes the object leave the watch, which
// wakes the reconciler like a deletion.
var protectedLabels = labels.Set{"app.kubernetes.io/part-of": "stencil"}

// SetupWithManager adds the reconciler and its watches to the manager, which runs them on the leader. The watches hold
// metadata only.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	configMap := metadataOf(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	watched := map[client.Object]cache.ByObject{
		configMap: {Namespaces: map[string]cache.Config{
			r.options.ConfigMap.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", r.options.ConfigMap.Name)},
		}},
	}
	for _, kind := range kinds {
		object := metadataOf(admissionregistrationv1.SchemeGroupVersion.WithKind(kind))
		watched[object] = cache.ByObject{Label: protectedLabels.AsSelector()}
	}
	watches, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:                  mgr.GetHTTPClient(),
		Mapper:                      mgr.GetRESTMapper(),
		Scheme:                      mgr.GetScheme(),
		ByObject:                    watched,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		return fmt.Errorf("making the watches of self-protection: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(watches.Start)); err != nil {
		return fmt.Errorf("adding the watches of self-protection: %w", err)
	}
	// Whatever happens, the question is the same: is everything as it should be?
	toTheOne := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: r.options.ConfigMap}}
	})
	protection := builder.ControllerManagedBy(mgr).Named(controllerName).WithOptions(controller.Options{
		// One object that cannot be restored must not hold up the others for long.
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](shortestRetry, longestRetry),
	})
	for object := range watched {
		protection = protection.WatchesRawSource(source.Kind(watches, object, toTheOne))
	}
	if err := protection.Complete(r); err != nil {
		return fmt.Errorf("setting up the controller of self-protection: %w", err)
	}
	return nil
}

func metadataOf(kind schema.GroupVersionKind) client.Object {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}
