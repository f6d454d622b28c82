package goldenimage

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/reconcilers/internal/single"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
)

const (
	usageControllerName = "golden-image-usage"
	usageFieldManager   = "stencil-golden-image-usage"
	// usageInterval is the delay from a change until the numbers are written: many VirtualMachines are often created together.
	usageInterval = 5 * time.Second
)

// Dependents are the templates that depend on DataSources; readiness.Dependents implements it.
type Dependents interface {
	// Complete reports whether all templates are known.
	Complete() bool
	Of(dataSource types.NamespacedName) []types.NamespacedName
	// Listen calls a function for each DataSource whose templates change. The function does not block, and calls nothing of Dependents.
	Listen(changed func(dataSource types.NamespacedName))
}

// VirtualMachines are VirtualMachines by the DataSources of their disks; observed.Watch implements it.
type VirtualMachines interface {
	Synced() bool
	// Clones returns the number of those with a disk from one of these DataSources, unless the cluster has no VirtualMachines.
	Clones(of map[types.NamespacedName]bool) (number int, known bool)
	// Listen calls a function for each DataSource whose number changes. The function does not block, and calls nothing of VirtualMachines.
	Listen(changed func(dataSource types.NamespacedName))
}

// usage writes where the DataSources of GoldenImages are used. It is a controller of its own, so that a VirtualMachine that is created does not
// cause all that belongs to an image to be read.
type usage struct {
	templates Dependents
	vms       VirtualMachines
	wake      *wake
	images    dynamic.Interface
	statuses  *statuswriter.Writer
	metrics   *metrics
	// changed passes DataSources on: listeners must not block.
	changed workqueue.TypedInterface[types.NamespacedName]
	queue   atomic.Pointer[single.Queue]
}

func (u *usage) source() source.Source {
	return source.Func(func(ctx context.Context, queue single.Queue) error {
		u.queue.Store(&queue)
		single.Drain(ctx, u.changed, func(dataSource types.NamespacedName) {
			if of, _ := u.wake.sources.Get(dataSource.Namespace, dataSource.Name); of.Image != "" {
				u.soon(types.NamespacedName{Namespace: dataSource.Namespace, Name: of.Image})
			}
		})
		u.templates.Listen(u.changed.Add)
		u.vms.Listen(u.changed.Add)
		return nil
	})
}

// soon counts after a delay, once for all calls until then.
func (u *usage) soon(image types.NamespacedName) {
	if queue := u.queue.Load(); queue != nil {
		(*queue).AddAfter(reconcile.Request{NamespacedName: image}, usageInterval)
	}
}

// Reconcile implements reconcile.Reconciler.
func (u *usage) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !u.wake.synced() || !u.templates.Complete() || !u.vms.Synced() {
		return reconcile.Result{RequeueAfter: syncInterval}, nil
	}
	image, err := read(ctx, u.images, request)
	if err != nil {
		return reconcile.Result{}, err
	}
	if image == nil {
		u.metrics.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	counted := u.count(request.NamespacedName)
	u.metrics.used(request.NamespacedName, counted)
	if equality.Semantic.DeepEqual(image.Status.Usage, counted) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, u.statuses.Apply(ctx, statuswriter.GoldenImage(image), usageFieldManager, v1alpha1.GoldenImageStatus{Usage: counted})
}

func (u *usage) count(image types.NamespacedName) *v1alpha1.GoldenImageUsage {
	dataSources, templates := map[types.NamespacedName]bool{}, map[types.NamespacedName]bool{}
	u.wake.sources.Range(func(name types.NamespacedName, of note) bool {
		if name.Namespace == image.Namespace && of.Image == image.Name {
			dataSources[name] = true
		}
		return true
	})
	for dataSource := range dataSources {
		for _, template := range u.templates.Of(dataSource) {
			templates[template] = true
		}
	}
	counted := &v1alpha1.GoldenImageUsage{Templates: int32(len(templates))} //nolint:gosec // a cluster has fewer
	if vms, known := u.vms.Clones(dataSources); known {
		counted.VirtualMachines = ptr.To(int32(vms)) //nolint:gosec // a cluster has fewer
	}
	return counted
}
