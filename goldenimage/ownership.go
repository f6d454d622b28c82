package goldenimage

import (
	"fmt"
	"slices"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// owner says to whom a DataSource belongs.
type owner int

const (
	// absent: there is none, and it may be made.
	absent owner = iota
	// ours: it belongs to the GoldenImage.
	ours
	// adoptable: it belongs to nobody, and may be taken over.
	adoptable
	// provided: it was made by a person or another program, and is left alone.
	provided
	// foreign: it belongs to another operator, DataImportCron or GoldenImage.
	foreign
)

// verdict is to whom a DataSource belongs, and why it is not touched.
type verdict struct {
	kind owner
	why  string
}

// judge decides to whom a DataSource belongs. cron is the name of the DataImportCron that moves it; empty if none does.
func (d *decision) judge(name, cron string) verdict {
	image, source, adopt := d.image, d.Sources[name], d.image.Spec.Adopt
	// A claim of its name that was there before the first import is what it stands for.
	if cron != "" && d.Provided[name] && adopt != v1alpha1.AdoptAlways && !d.hasHistory(cron) && (source == nil || belongs(source, image.Name)) {
		return verdict{provided, fmt.Sprintf("PersistentVolumeClaim %s exists, so that DataSource %s stands for it: to import the image instead, set spec.adopt to Always", name, name)}
	}
	if source == nil {
		return verdict{kind: absent}
	}
	of := source.Annotations[v1alpha1.AnnotationGoldenImage]
	mover := source.Labels[LabelDataImportCron]
	movedBy := d.Crons[mover]
	switch {
	case source.Annotations[annotationOperator] != "":
		return verdict{foreign, fmt.Sprintf("DataSource %s belongs to another operator: it has the annotation %s", name, annotationOperator)}
	case of == image.Name:
		return verdict{kind: ours}
	case of != "":
		return verdict{foreign, fmt.Sprintf("DataSource %s belongs to GoldenImage %s", name, of)}
	case movedBy != nil && movedBy.Labels[v1alpha1.LabelGoldenImage] != image.Name:
		return verdict{foreign, fmt.Sprintf("DataSource %s is moved by DataImportCron %s", name, mover)}
	case adopt == v1alpha1.AdoptAlways, adopt == v1alpha1.AdoptIfNotReady && !source.Ready:
		return verdict{kind: adoptable}
	case adopt == v1alpha1.AdoptIfNotReady:
		return verdict{provided, fmt.Sprintf("DataSource %s exists and is ready: to take it over, set spec.adopt to Always", name)}
	}
	return verdict{provided, fmt.Sprintf("DataSource %s exists: to take it over, set spec.adopt to IfNotReady or Always", name)}
}

// belongs reports whether a DataSource belongs to the GoldenImage with this name. The annotation says so: CDI copies labels of volumes to
// DataSources.
func belongs(source *DataSource, image string) bool {
	return source.Annotations[v1alpha1.AnnotationGoldenImage] == image
}

// hasHistory reports whether an image was imported for a DataImportCron.
func (d *decision) hasHistory(cron string) bool {
	return slices.ContainsFunc(d.plan.Status.History, func(image v1alpha1.ImportedImage) bool { return managed(d.image, image.Architecture) == cron })
}
