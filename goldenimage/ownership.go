package goldenimage

import (
	"fmt"
	"slices"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// owner is who owns a DataSource.
type owner int

const (
	// absent: there is none, and it may be made.
	absent owner = iota
	// ours: it belongs to the GoldenImage.
	ours
	// adoptable: it has no owner, and may be taken over.
	adoptable
	// provided: it was made by a user or another program, and is left alone.
	provided
	// foreign: it belongs to another operator, DataImportCron or GoldenImage.
	foreign
)

// ownership is who owns a DataSource, and why it is not written.
type ownership struct {
	kind owner
	why  string
}

// ownership decides who owns a DataSource. cron is the name of the DataImportCron that moves it; empty if none does.
func (d *decision) ownership(name, cron string) ownership {
	image, source, adopt := d.image, d.Sources[name], d.image.Spec.Adopt
	// A claim of its name that was there before the first import is what it stands for.
	if cron != "" && d.Provided[name] && adopt != v1alpha1.AdoptAlways && !d.hasHistory(cron) && (source == nil || belongs(source, image.Name)) {
		return ownership{provided, fmt.Sprintf("PersistentVolumeClaim %s exists, so that DataSource %s stands for it: to import the image instead, set spec.adopt to Always", name, name)}
	}
	if source == nil {
		return ownership{kind: absent}
	}
	of := source.Annotations[v1alpha1.AnnotationGoldenImage]
	mover := source.Labels[LabelDataImportCron]
	movedBy := d.Crons[mover]
	switch {
	case source.Annotations[annotationOperator] != "":
		return ownership{foreign, fmt.Sprintf("DataSource %s belongs to another operator: it has the annotation %s", name, annotationOperator)}
	case of == image.Name:
		return ownership{kind: ours}
	case of != "":
		return ownership{foreign, fmt.Sprintf("DataSource %s belongs to GoldenImage %s", name, of)}
	case movedBy != nil && movedBy.Labels[v1alpha1.LabelGoldenImage] != image.Name:
		return ownership{foreign, fmt.Sprintf("DataSource %s is moved by DataImportCron %s", name, mover)}
	case adopt == v1alpha1.AdoptAlways, adopt == v1alpha1.AdoptIfNotReady && !source.Ready:
		return ownership{kind: adoptable}
	case adopt == v1alpha1.AdoptIfNotReady:
		return ownership{provided, fmt.Sprintf("DataSource %s exists and is ready: to take it over, set spec.adopt to Always", name)}
	}
	return ownership{provided, fmt.Sprintf("DataSource %s exists: to take it over, set spec.adopt to IfNotReady or Always", name)}
}

// belongs reports whether a DataSource belongs to the GoldenImage with this name. The annotation decides, not the label: CDI copies labels of
// volumes to DataSources.
func belongs(source *DataSource, image string) bool {
	return source.Annotations[v1alpha1.AnnotationGoldenImage] == image
}

// hasHistory reports whether an image was imported for a DataImportCron.
func (d *decision) hasHistory(cron string) bool {
	return slices.ContainsFunc(d.plan.Status.History, func(image v1alpha1.ImportedImage) bool { return managed(d.image, image.Architecture) == cron })
}
