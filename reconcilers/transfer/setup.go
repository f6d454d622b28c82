package transfer

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/reconcilers/internal/expansion"
	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

const (
	// concurrency is the number of transfers that are reconciled at a time. One that waits for a mover takes no worker.
	concurrency = 4

	// Delays between attempts after a failure.
	shortestRetry = time.Second
	longestRetry  = time.Minute
)

// SetupWithManager adds the reconcilers of imports, exports and captured disks to the manager, which runs them on the leader.
func SetupWithManager(mgr manager.Manager, o Options) error {
	r, err := newRunner(o)
	if err != nil {
		return err
	}
	expander, err := expansion.New(o.Config)
	if err != nil {
		return err
	}
	for name, reconciler := range map[string]reconcile.Reconciler{
		"virtualmachinetemplateimports":  &Imports{r},
		"virtualmachinetemplateexports":  &Exports{r, expander},
		"virtualmachinetemplaterequests": &Captures{r},
	} {
		changes, err := watch(mgr, name)
		if err != nil {
			return err
		}
		c := single.Controller{Name: name, Reconciler: reconciler, Workers: concurrency, ShortestRetry: shortestRetry, LongestRetry: longestRetry}
		if err := single.Add(mgr, c, changes); err != nil {
			return err
		}
	}
	return nil
}

// watch enqueues the objects of a kind. A change of the status, which the reconciler writes, enqueues nothing.
func watch(mgr manager.Manager, resource string) (source.Source, error) {
	client, err := metadata.NewForConfig(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("making the client that watches transfers: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("making the client that watches transfers: %w", err)
	}
	kind := v1beta1.GroupVersion.WithResource(resource)
	return source.Func(func(ctx context.Context, queue single.Queue) error {
		index := watching.NewIndex(watching.Options[*metav1.PartialObjectMetadata, metav1.ObjectMeta]{
			Kind: resource,
			Convert: func(object *metav1.PartialObjectMetadata, _ metav1.ObjectMeta, _ bool) (metav1.ObjectMeta, error) {
				converted := metav1.ObjectMeta{UID: object.UID, Generation: object.Generation, DeletionTimestamp: object.DeletionTimestamp, Finalizers: object.Finalizers}
				if value, found := object.Annotations[contract.AnnotationSealAcknowledged]; found {
					converted.Annotations = map[string]string{contract.AnnotationSealAcknowledged: value}
				}
				return converted, nil
			},
			Equal: func(before, after metav1.ObjectMeta) bool { return equality.Semantic.DeepEqual(before, after) },
			Changed: func(update watching.Update[metav1.ObjectMeta]) {
				for _, each := range update.Changes {
					if each.Exists {
						queue.Add(reconcile.Request{NamespacedName: each.NamespacedName})
					}
				}
			},
		})
		go watching.RunLate(ctx, mgr.GetLogger().WithName("transfer"), served, watching.Late{
			Name: "transfer-" + resource, Resource: kind, Example: &metav1.PartialObjectMetadata{}, Into: index,
			Source: watching.Source(client.Resource(kind), watching.Selector{}),
		})
		return nil
	}), nil
}
