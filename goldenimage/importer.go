package goldenimage

import "github.com/vmstencil/stencil/api/stencil/v1alpha1"

// importer is a way of importing images with CDI.
type importer interface {
	// mover returns the name of the DataImportCron that moves a DataSource; empty if none does.
	mover(dataSource string) string
	// observe sets what is known of the import of an architecture: its volume, its problem, and the digest if no other is known.
	observe(d *decision, a *architecture)
	// take adds what was imported to the history. The DataSource of the architecture stands for the volume.
	take(d *decision, a *architecture, volume string, snapshot, ready bool)
	// stands returns what the DataSource is moved to, nil if it is not, and the image that it stands for then.
	stands(d *decision, a *architecture) (map[string]any, *v1alpha1.ImportedImage)
	// proceed lets CDI import the image with the desired digest.
	proceed(d *decision, a *architecture)
	// collectable reports whether old images may be deleted.
	collectable(a *architecture) bool
}

func importerOf(image *v1alpha1.GoldenImage) importer {
	if image.Spec.Source.HTTP != nil || image.Spec.Source.S3 != nil {
		return byDataVolume{}
	}
	return byCron{}
}
