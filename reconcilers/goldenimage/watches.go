package goldenimage

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/goldenimage"
	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

// note is what is stored of a watched object: the GoldenImage and the DataImportCron in its labels. Of a GoldenImage it is the version without
// its status, which this package writes.
type note struct{ Image, Cron, Version string }

type index = watching.Index[*metav1.PartialObjectMetadata, note]

// wake enqueues GoldenImages whose objects change. It watches metadata only: the version of an object changes with its status.
type wake struct {
	images, sources, crons, volumes *index
	queue                           workqueue.TypedRateLimitingInterface[reconcile.Request]
	// changed passes names on, because callbacks of an index must not read one.
	changed workqueue.TypedInterface[change]
	// listen calls a function for images that depend on something else that has changed.
	listen func(changed func(image types.NamespacedName))

	partial metadata.Interface
	served  discovery.ServerResourcesInterface
	log     logr.Logger
}

// change is an object on which a GoldenImage may depend.
type change struct {
	namespace, name string
	note
}

func newWake(partial metadata.Interface, served discovery.ServerResourcesInterface, log logr.Logger) *wake {
	w := &wake{partial: partial, served: served, log: log, changed: workqueue.NewTyped[change]()}
	labels := func(object *metav1.PartialObjectMetadata, _ note, _ bool) (note, error) {
		return note{Image: object.Labels[v1alpha1.LabelGoldenImage], Cron: object.Labels[goldenimage.LabelDataImportCron]}, nil
	}
	version := func(object *metav1.PartialObjectMetadata, _ note, _ bool) (note, error) {
		return note{Version: fmt.Sprint(object.UID, object.Generation, object.Annotations, object.DeletionTimestamp, object.Finalizers)}, nil
	}
	watched := func(kind string, convert func(*metav1.PartialObjectMetadata, note, bool) (note, error), equal func(before, after note) bool) *index {
		return watching.NewIndex(watching.Options[*metav1.PartialObjectMetadata, note]{
			Kind: kind, Convert: convert, Equal: equal,
			Changed: func(update watching.Update[note]) {
				for _, each := range update.Changes {
					w.changed.Add(change{each.Namespace, each.Name, each.Before})
					if each.Exists && each.After != each.Before {
						w.changed.Add(change{each.Namespace, each.Name, each.After})
					}
				}
			},
		})
	}
	w.images = watched(goldenImages.Resource, version, func(before, after note) bool { return before == after })
	// The status of the others counts.
	w.sources, w.crons = watched(goldenimage.DataSources.Resource, labels, nil), watched(goldenimage.DataImportCrons.Resource, labels, nil)
	w.volumes = watched(goldenimage.DataVolumes.Resource, labels, nil)
	return w
}

func (w *wake) synced() bool {
	return w.images.Synced() && w.sources.Synced() && w.crons.Synced() && w.volumes.Synced()
}

// source starts the watches together with a controller.
func (w *wake) source() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.queue = queue
		watch := func(resource schema.GroupVersionResource, into *index, selector string) watching.Late {
			return watching.Late{
				Name: "golden-images-" + resource.Resource, Resource: resource, Into: into, Failed: into.FailIfNotServed,
				Example: &metav1.PartialObjectMetadata{}, Source: watching.Source(w.partial.Resource(resource), watching.Selector{Labels: selector}),
			}
		}
		go watching.RunLate(ctx, w.log, w.served,
			watch(goldenImages, w.images, ""),
			watch(goldenimage.DataSources, w.sources, ""),
			watch(goldenimage.DataImportCrons, w.crons, ""),
			// CDI copies the label of a DataImportCron to what it imports.
			watch(goldenimage.DataVolumes, w.volumes, v1alpha1.LabelGoldenImage),
		)
		single.Drain(ctx, w.changed, w.pass)
		w.listen(func(image types.NamespacedName) { queue.Add(reconcile.Request{NamespacedName: image}) })
		return nil
	})
}

// pass enqueues the GoldenImages that a change affects: that of its label, those of the name or of the beginning of its name, and the one with
// the DataImportCron of its label.
func (w *wake) pass(one change) {
	names := []string{one.name, one.Image, one.Cron}
	w.images.Range(func(name types.NamespacedName, _ note) bool {
		if name.Namespace == one.namespace && slices.ContainsFunc(names, func(other string) bool { return begins(other, name.Name) }) {
			w.queue.Add(reconcile.Request{NamespacedName: name})
		}
		return true
	})
	if one.Image != "" {
		w.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: one.namespace, Name: one.Image}})
	}
}

// begins reports whether a name is another, or begins with it and a hyphen.
func begins(name, with string) bool {
	return len(name) >= len(with) && name[:len(with)] == with && (len(name) == len(with) || name[len(with)] == '-')
}
