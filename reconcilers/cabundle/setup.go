package cabundle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

// controllerName names the controller in logs and in controller-runtime's metrics.
const controllerName = "cabundle"

// Sources returns event sources of the webhook configurations; publication.Watch implements it.
type Sources interface {
	Sources(handler handler.EventHandler) []source.Source
}

// SetupWithManager adds the reconciler to the manager, which runs it on the leader. secrets is a cache of the authority's Secret; no other
// object is read from it.
func (r *Reconciler) SetupWithManager(mgr manager.Manager, secrets cache.Cache, configurations Sources) error {
	// Every event results in the same request.
	toTheOne := single.OnEvent(reconcile.Request{NamespacedName: r.options.Secret})
	controller := builder.ControllerManagedBy(mgr).
		Named(controllerName).
		WatchesRawSource(source.Kind[client.Object](secrets, &corev1.Secret{}, toTheOne))
	for _, each := range configurations.Sources(toTheOne) {
		controller = controller.WatchesRawSource(each)
	}
	if err := controller.Complete(r); err != nil {
		return fmt.Errorf("setting up the controller of the caBundles: %w", err)
	}
	return nil
}
