package goldenimage

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// collect deletes the images that are not to be kept, while no import is going on. CDI's own garbage collection is not used: it disregards channels,
// and a volume cannot be withdrawn from it in time, because it writes its label again.
func (d *decision) collect() {
	for _, a := range d.arches {
		if d.image.Spec.Suspended || a.Current == nil || a.Current.Digest != a.desired || !d.by.collectable(a) {
			continue
		}
		kept := map[string]bool{a.Current.Volume: true, a.volume: true}
		for _, c := range d.plan.Status.Channels {
			if image := d.find(a.Name, c.Digest); image != nil && c.Architecture == a.Name {
				kept[image.Volume] = true
			}
		}
		left := max(d.image.Spec.ImportsToKeep, 1) - 1
		for _, image := range d.plan.Status.History {
			if image.Architecture == a.Name && image.Volume != a.Current.Volume && left > 0 {
				kept[image.Volume], left = true, left-1
			}
		}
		var gone []string
		for _, volume := range d.Volumes {
			if !kept[volume.Name] && (volume.Labels[LabelDataImportCron] == a.DataSource || volume.Labels[v1alpha1.LabelGoldenImage] == d.image.Name) && imported(volume.Name, a.DataSource) {
				d.act(DeleteUnused, volume.Resource, volume.Name, nil)
				gone = append(gone, volume.Name)
			}
		}
		if len(gone) > 0 {
			slices.Sort(gone)
			d.again(d.Now.Add(collectInterval))
			d.event(false, EventDeleted, "deletes %s as soon as no disk is being cloned from it: spec.importsToKeep is %d", list(slices.Compact(gone)), max(d.image.Spec.ImportsToKeep, 1))
		}
	}
}

// collectInterval is the delay until images that are being cloned from are tried again.
const collectInterval = time.Minute

// imported reports whether CDI gives such a name to a volume that it imports for a DataSource: the first digits of a digest, or of a UID, follow.
func imported(volume, dataSource string) bool {
	digits, found := strings.CutPrefix(volume, dataSource+"-")
	return found && beginning.MatchString(digits)
}

var beginning = regexp.MustCompile(`^([0-9a-f]{12}|[0-9a-f]{8}-[0-9a-f]{3})$`)
