package goldenimage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// byDataVolume imports with DataVolumes of Stencil's own, for sources that DataImportCrons do not take, and moves the DataSource itself.
type byDataVolume struct{}

func (byDataVolume) mover(string) string { return "" }

func (byDataVolume) observe(d *decision, a *architecture) {
	if a.desired == "" {
		return
	}
	name := volumeName(a.DataSource, a.desired)
	volume := d.dataVolume(a, name)
	if volume != nil {
		a.volume = name
	}
	if volume != nil && volume.Import.lost(a.desired) && d.find(a.Name, a.desired) == nil {
		a.problem = fmt.Sprintf("CDI verifies no checksum, because it has not stored that of DataVolume %s: update CDI to 1.65 or later, then delete the DataVolume", name)
	}
}

// dataVolume returns a DataVolume that was made for an architecture, nil if there is none of the name.
func (d *decision) dataVolume(a *architecture, name string) *Volume {
	for i := range d.Volumes {
		if volume := &d.Volumes[i]; volume.Name == name && d.madeFor(a, volume) {
			return volume
		}
	}
	return nil
}

// madeFor reports whether a volume is a DataVolume that was made for an architecture. The label is not enough: CDI copies it to disks that are cloned.
func (d *decision) madeFor(a *architecture, volume *Volume) bool {
	return volume.Import != nil && volume.Import.Digest != "" && volume.Labels[v1alpha1.LabelGoldenImage] == d.image.Name && volume.Name == volumeName(a.DataSource, volume.Import.Digest)
}

// lost reports whether the checksum of a digest is not verified.
func (i *FileImport) lost(digest string) bool { return hasChecksum(digest) && i.Checksum != digest }

// hasChecksum reports whether the digest of a file is its checksum.
func hasChecksum(digest string) bool { return strings.HasPrefix(digest, "sha") }

func (byDataVolume) take(d *decision, a *architecture, _ string, _, _ bool) {
	var done []*Volume
	for i := range d.Volumes {
		if volume := &d.Volumes[i]; d.madeFor(a, volume) && volume.Import.Done != nil && !volume.Import.lost(volume.Import.Digest) && d.has(volume.Name) {
			done = append(done, volume)
		}
	}
	slices.SortFunc(done, func(one, other *Volume) int { return one.Import.Done.Compare(other.Import.Done.Time) })
	for _, volume := range done {
		d.add(a, volume.Import.Digest, volume.Name, false, volume.Import.Done)
	}
}

func (byDataVolume) stands(d *decision, a *architecture) (map[string]any, *v1alpha1.ImportedImage) {
	image := d.find(a.Name, a.desired)
	if image == nil || d.image.Spec.Suspended {
		return nil, a.Current
	}
	return standsFor(d.image.Namespace, image), image
}

// proceed creates the DataVolume, and deletes those that are not needed: imports of older versions that have not succeeded, and of fields that have changed.
func (byDataVolume) proceed(d *decision, a *architecture) {
	if cron := d.Crons[a.DataSource]; cron != nil && cron.Labels[v1alpha1.LabelGoldenImage] == d.image.Name {
		// The source was a registry before. The DataImportCron would move the DataSource back.
		if !cron.Deleting {
			d.act(Delete, DataImportCrons, a.DataSource, nil)
		}
		return
	}
	name, template := volumeName(a.DataSource, a.desired), d.fileTemplate(a)
	for i := range d.Volumes {
		volume := &d.Volumes[i]
		if !d.madeFor(a, volume) || d.find(a.Name, volume.Import.Digest) != nil {
			continue
		}
		if volume.Name != name || volume.Import.Template != annotationOf(template, AnnotationTemplate) {
			d.act(Delete, DataVolumes, volume.Name, nil)
		}
	}
	if d.find(a.Name, a.desired) == nil && d.dataVolume(a, name) == nil && a.problem == "" {
		d.act(Create, DataVolumes, name, template)
	}
}

func (byDataVolume) collectable(*architecture) bool { return true }

// fileTemplate returns the DataVolume of an architecture.
func (d *decision) fileTemplate(a *architecture) map[string]any {
	from, kind := map[string]any{}, "http"
	source := d.image.Spec.Source
	put := func(key, value string) {
		if value != "" {
			from[key] = value
		}
	}
	if http := source.HTTP; http != nil {
		put("url", http.URL)
		put("secretRef", http.SecretRef)
		put("certConfigMap", http.CertConfigMap)
		if hasChecksum(a.desired) {
			put("checksum", a.desired)
		}
	} else {
		kind = "s3"
		put("url", source.S3.URL)
		put("secretRef", source.S3.SecretRef)
		put("certConfigMap", source.S3.CertConfigMap)
	}
	spec := map[string]any{"source": map[string]any{kind: from}, "storage": storageOf(d.image)}
	object := d.object(kindDataVolume, volumeName(a.DataSource, a.desired), map[string]any{v1alpha1.LabelGoldenImage: d.image.Name}, map[string]any{
		v1alpha1.AnnotationImageDigest: a.desired, AnnotationTemplate: fingerprint(spec), annotationImmediate: "true",
	})
	object["spec"] = spec
	return object
}
