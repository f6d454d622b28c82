package cabundle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

// Names of the controllers in logs and in controller-runtime's metrics.
const (
	controllerName = "cabundle"
	joiningName    = "cabundle-join"
)

// Sources returns event sources of the webhook configurations; publication.Watch implements it.
type Sources interface {
	Sources(handler handler.EventHandler) []source.Source
}

// SetupWithManager adds the reconciler to the manager, which runs it on the leader, and its part for all replicas. secrets is a cache of the
// authority's Secret; no other object is read from it.
func (r *Reconciler) SetupWithManager(mgr manager.Manager, secrets cache.Cache, configurations Sources) error {
	if err := r.setup(mgr, secrets, configurations, controllerName, true, r); err != nil {
		return err
	}
	return r.setup(mgr, secrets, configurations, joiningName, false, joining{r})
}

func (r *Reconciler) setup(mgr manager.Manager, secrets cache.Cache, configurations Sources, name string, leader bool, reconciler reconcile.Reconciler) error {
	// Every event results in the same request.
	toTheOne := single.OnEvent(reconcile.Request{NamespacedName: r.options.Secret})
	registered := builder.ControllerManagedBy(mgr).
		Named(name).
		WithOptions(controller.Options{NeedLeaderElection: &leader}).
		WatchesRawSource(source.Kind[client.Object](secrets, &corev1.Secret{}, toTheOne))
	for _, each := range configurations.Sources(toTheOne) {
		registered = registered.WatchesRawSource(each)
	}
	if err := registered.Complete(reconciler); err != nil {
		return fmt.Errorf("setting up the controller %s: %w", name, err)
	}
	return nil
}
