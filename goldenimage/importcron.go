package goldenimage

import (
	"fmt"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// byCron imports with a DataImportCron, which makes DataVolumes and moves the DataSource.
type byCron struct{}

func (byCron) mover(dataSource string) string { return dataSource }

func (byCron) observe(d *decision, a *architecture) {
	a.cron = d.Crons[a.DataSource]
	if a.cron == nil {
		return
	}
	if a.desired == "" {
		a.desired = a.cron.Annotations[annotationDesired]
	}
	a.volume = a.cron.Volume
}

func (byCron) take(d *decision, a *architecture, volume string, snapshot, ready bool) {
	// CDI moves the DataSource before it writes the status.
	if a.cron != nil && a.cron.Volume == volume && a.cron.Imported == volume && a.cron.Digest != "" && ready && volume != "" && d.has(volume) {
		d.add(a, a.cron.Digest, volume, snapshot, a.cron.ImportedAt)
	}
}

func (byCron) stands(_ *decision, a *architecture) (map[string]any, *v1alpha1.ImportedImage) {
	return nil, a.Current
}

func (byCron) proceed(d *decision, a *architecture) {
	template := d.template(a)
	switch {
	case a.cron == nil:
		d.act(Create, DataImportCrons, a.DataSource, template)
	case a.cron.Labels[v1alpha1.LabelGoldenImage] != d.image.Name:
		d.conflicts = append(d.conflicts, fmt.Sprintf("DataImportCron %s exists and was not made for this GoldenImage: delete or rename one of them", a.DataSource))
	case a.cron.Deleting:
	case a.added:
		// Only the DataImportCron has the whole digest of the image that it has imported: it is not changed before the history is stored.
		d.again(d.Now)
	case a.cron.Annotations[AnnotationTemplate] != annotationOf(template, AnnotationTemplate):
		// Its spec is immutable. Its retention policy keeps the volumes, which the next one finds by their digests.
		d.act(Delete, DataImportCrons, a.DataSource, nil)
	case a.cron.Annotations[annotationDesired] != a.desired:
		d.act(Patch, DataImportCrons, a.DataSource, map[string]any{"metadata": map[string]any{"annotations": d.desired(a)}})
	}
}

func (byCron) collectable(a *architecture) bool { return a.cron != nil && !a.cron.Deleting }
