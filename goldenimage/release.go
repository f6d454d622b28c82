package goldenimage

import (
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// releaseInterval is the delay until it is checked whether what is deleted is gone.
const releaseInterval = 2 * time.Second

// release gives back or deletes all that belongs to an image that is being deleted. The DataImportCrons go first: they would write to the rest.
func (d *decision) release() {
	d.plan.Finalizer = true
	waits := false
	for name, cron := range d.Crons {
		if cron.Labels[v1alpha1.LabelGoldenImage] != d.image.Name {
			continue
		}
		waits = true
		if !cron.Deleting {
			d.act(Delete, DataImportCrons, name, nil)
		}
	}
	if !waits {
		for name, source := range d.Sources {
			if belongs(source, d.image.Name) {
				d.giveBack(name, source)
			}
		}
		d.dropVolumes(d.ownVolume)
	}
	if waits || len(d.plan.Actions) > 0 {
		d.again(d.Now.Add(releaseInterval))
		return
	}
	d.plan.Finalizer = false
}

// giveBack restores a DataSource that was taken over; another is deleted, or kept without anything of the image.
func (d *decision) giveBack(name string, source *DataSource) {
	previous := source.Annotations[v1alpha1.AnnotationPreviousSource]
	if previous == "" && d.image.Spec.Retention == v1alpha1.RetentionDelete {
		d.act(Delete, DataSources, name, nil)
		return
	}
	owners := []any{}
	for _, owner := range source.Owners {
		if owner.UID != d.image.UID {
			owners = append(owners, reference(owner))
		}
	}
	patch := map[string]any{"metadata": map[string]any{
		"labels": map[string]any{v1alpha1.LabelGoldenImage: nil, LabelDataImportCron: nil},
		"annotations": map[string]any{
			v1alpha1.AnnotationGoldenImage: nil, v1alpha1.AnnotationPreviousSource: nil,
			v1alpha1.AnnotationImageDigest: nil, v1alpha1.AnnotationImageImportedAt: nil, v1alpha1.AnnotationImageStaleAfter: nil,
		},
		"ownerReferences": owners,
	}}
	var stood map[string]any
	if json.Unmarshal([]byte(previous), &stood) == nil {
		patch["spec"] = map[string]any{"source": instead(stood, source.Source)}
	}
	d.act(Patch, DataSources, name, patch)
}

func reference(owner metav1.OwnerReference) map[string]any {
	text, _ := json.Marshal(owner)
	made := map[string]any{}
	_ = json.Unmarshal(text, &made)
	return made
}

// dropVolumes deletes volumes of the image if its retention is Delete.
func (d *decision) dropVolumes(of func(Volume) bool) {
	if d.image.Spec.Retention != v1alpha1.RetentionDelete {
		return
	}
	for _, volume := range d.Volumes {
		if of(volume) {
			d.act(Delete, volume.Resource, volume.Name, nil)
		}
	}
}

// ownVolume reports whether a volume was imported for this image. Labels are not enough: CDI copies them to the disks that are cloned from it,
// and a DataImportCron of the same name that was not made for this image has the same label on its volumes.
func (d *decision) ownVolume(volume Volume) bool {
	if slices.ContainsFunc(d.image.Status.History, func(image v1alpha1.ImportedImage) bool { return image.Volume == volume.Name }) {
		return true
	}
	return volume.Labels[v1alpha1.LabelGoldenImage] == d.image.Name && slices.ContainsFunc(Names(d.image), func(name string) bool { return imported(volume.Name, name) })
}

// remove deletes what was made for architectures and channels that the image no longer has.
func (d *decision) remove() {
	wanted := Names(&v1alpha1.GoldenImage{ObjectMeta: d.image.ObjectMeta, Spec: d.image.Spec})
	for name, source := range d.Sources {
		if slices.Contains(wanted, name) || !belongs(source, d.image.Name) {
			continue
		}
		image := slices.ContainsFunc(d.image.Status.Architectures, func(a v1alpha1.GoldenImageArchitecture) bool { return a.DataSource == name })
		if image || source.Annotations[v1alpha1.AnnotationPreviousSource] != "" {
			d.giveBack(name, source)
		} else {
			d.act(Delete, DataSources, name, nil)
		}
	}
	managed := Managed(d.image)
	for name, cron := range d.Crons {
		if !slices.Contains(managed, name) && cron.Labels[v1alpha1.LabelGoldenImage] == d.image.Name && !cron.Deleting {
			d.act(Delete, DataImportCrons, name, nil)
			d.dropVolumes(func(v Volume) bool { return d.ownVolume(v) && imported(v.Name, name) })
		}
	}
}
