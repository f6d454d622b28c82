package goldenimage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/goldenimage"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// gather reads what belongs to an image. It reads the API server itself: a cache may be older than the event.
func (r *Reconciler) gather(ctx context.Context, image *v1alpha1.GoldenImage) (goldenimage.State, error) {
	s := goldenimage.State{
		Image: image, Now: time.Now(),
		Sources: map[string]*goldenimage.DataSource{}, Crons: map[string]*goldenimage.Cron{}, Provided: map[string]bool{},
	}
	names := goldenimage.Names(image)
	crons := map[string]bool{}
	for _, name := range names {
		object, err := r.get(ctx, goldenimage.DataSources, image.Namespace, name)
		if err != nil {
			return s, err
		}
		crons[name] = true
		if object != nil {
			s.Sources[name] = dataSource(object)
			crons[object.GetLabels()[goldenimage.LabelDataImportCron]] = true
		}
	}
	delete(crons, "")
	for name := range crons {
		object, err := r.get(ctx, goldenimage.DataImportCrons, image.Namespace, name)
		if err != nil {
			return s, err
		}
		if object != nil {
			s.Crons[name] = importCron(object)
		}
	}
	managed := goldenimage.Managed(image)
	for _, name := range managed {
		object, err := r.get(ctx, goldenimage.Claims, image.Namespace, name)
		if err != nil {
			return s, err
		}
		s.Provided[name] = object != nil
	}
	var err error
	s.Volumes, err = r.volumes(ctx, image)
	return s, err
}

// get returns an object, nil if there is none.
func (r *Reconciler) get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	object, err := r.account.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s %s/%s: %w", resource.Resource, namespace, name, err)
	}
	return object, nil
}

// volumes lists the volumes of an image. CDI copies the label of a DataImportCron to what it imports.
func (r *Reconciler) volumes(ctx context.Context, image *v1alpha1.GoldenImage) ([]goldenimage.Volume, error) {
	var volumes []goldenimage.Volume
	of := metav1.ListOptions{LabelSelector: v1alpha1.LabelGoldenImage + "=" + image.Name}
	for _, resource := range []schema.GroupVersionResource{goldenimage.DataVolumes, goldenimage.Claims, goldenimage.Snapshots} {
		listed, err := r.account.Resource(resource).Namespace(image.Namespace).List(ctx, of)
		if apierrors.IsNotFound(err) {
			// The cluster has no snapshots.
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing the %s of GoldenImage %s/%s: %w", resource.Resource, image.Namespace, image.Name, err)
		}
		for i := range listed.Items {
			object := &listed.Items[i]
			if object.GetDeletionTimestamp() != nil {
				continue
			}
			volume := goldenimage.Volume{Resource: resource, Name: object.GetName(), Labels: object.GetLabels()}
			if resource == goldenimage.DataVolumes {
				volume.Progress, volume.Problem = progress(object.Object)
				volume.Import = fileImport(object)
			}
			volumes = append(volumes, volume)
		}
	}
	return volumes, nil
}

// conflict is in the message of an error after which CDI reads the object again and continues.
const conflict = "the object has been modified"

// progress returns the progress of a DataVolume, and the message of CDI if its importer fails.
func progress(dataVolume map[string]any) (percent, problem string) {
	status := machine.MapAt(dataVolume, "status")
	percent = machine.StringAt(status, "progress")
	if percent == "N/A" {
		percent = machine.StringAt(status, "phase")
	}
	for _, condition := range machine.MapsAt(status, "conditions") {
		reason, message := machine.StringAt(condition, "reason"), machine.StringAt(condition, "message")
		failed := machine.StringAt(condition, "type") == "Running" && machine.StringAt(condition, "status") == "False" && (reason == "Error" || reason == "ImagePullFailed")
		unbound := machine.StringAt(condition, "type") == "Bound" && (strings.HasPrefix(reason, "Err") || reason == "Pending" && strings.Contains(message, "rror"))
		switch {
		case message == "" || strings.Contains(message, conflict):
		case failed:
			return percent, message
		case unbound:
			problem = message
		}
	}
	return percent, problem
}

func dataSource(object *unstructured.Unstructured) *goldenimage.DataSource {
	return &goldenimage.DataSource{
		Labels: object.GetLabels(), Annotations: object.GetAnnotations(), Owners: object.GetOwnerReferences(),
		Source: machine.MapAt(object.Object, "spec", "source"),
		Ready:  ready(object.Object),
	}
}

func importCron(object *unstructured.Unstructured) *goldenimage.Cron {
	status := machine.MapAt(object.Object, "status")
	made := &goldenimage.Cron{Labels: object.GetLabels(), Annotations: object.GetAnnotations(), Deleting: object.GetDeletionTimestamp() != nil}
	if imports := machine.MapsAt(status, "currentImports"); len(imports) > 0 {
		made.Volume, made.Digest = machine.StringAt(imports[0], "DataVolumeName"), machine.StringAt(imports[0], "Digest")
	}
	made.Imported = machine.StringAt(machine.MapAt(status, "lastImportedPVC"), "name")
	if at, err := time.Parse(time.RFC3339, machine.StringAt(status, "lastImportTimestamp")); err == nil {
		made.ImportedAt = &metav1.Time{Time: at}
	}
	return made
}

// ready reports whether the condition Ready of an object is true.
func ready(object map[string]any) bool {
	return slices.ContainsFunc(machine.MapsAt(machine.MapAt(object, "status"), "conditions"), func(one map[string]any) bool {
		return machine.StringAt(one, "type") == "Ready" && machine.StringAt(one, "status") == "True"
	})
}

// fileImport returns what a DataVolume imports.
func fileImport(object *unstructured.Unstructured) *goldenimage.FileImport {
	annotations, status := object.GetAnnotations(), machine.MapAt(object.Object, "status")
	made := &goldenimage.FileImport{
		Digest: annotations[v1alpha1.AnnotationImageDigest], Template: annotations[goldenimage.AnnotationTemplate],
		Checksum: machine.StringAt(machine.MapAt(object.Object, "spec", "source", "http"), "checksum"),
	}
	if machine.StringAt(status, "phase") == "Succeeded" {
		at := object.GetCreationTimestamp()
		for _, condition := range machine.MapsAt(status, "conditions") {
			ready := machine.StringAt(condition, "type") == "Ready" && machine.StringAt(condition, "status") == "True"
			if since, err := time.Parse(time.RFC3339, machine.StringAt(condition, "lastTransitionTime")); ready && err == nil {
				at = metav1.NewTime(since)
			}
		}
		made.Done = &at
	}
	return made
}
