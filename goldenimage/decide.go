package goldenimage

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// NextCheck returns the time at which the source of an image is to be checked; false if it is not to be.
func NextCheck(image *v1alpha1.GoldenImage) (time.Time, bool) {
	status := &image.Status
	_, invalid := NewSchedule(image.Spec.Schedule, "", "", "")
	switch {
	case invalid != nil || image.Spec.Suspended || image.DeletionTimestamp != nil:
		return time.Time{}, false
	case status.CheckedSource != SourceID(image), status.Refreshed != image.Annotations[v1alpha1.AnnotationRefresh], status.NextCheckTime == nil:
		return time.Time{}, true
	}
	return status.NextCheckTime.Time, true
}

// Decide returns what has to be written for an image, and its status without conditions that only a client can know.
func Decide(s State) Plan {
	d := &decision{State: s, image: s.Image, by: importerOf(s.Image)}
	d.plan.Status = *s.Image.Status.DeepCopy()
	status := &d.plan.Status
	if s.Image.DeletionTimestamp != nil {
		d.release()
		return d.plan
	}
	d.plan.Finalizer = true
	status.ObservedGeneration, status.DataSource = s.Image.Generation, base(s.Image)
	status.Architectures = aligned(status.Architectures, architectures(s.Image))
	d.history()
	d.checked()
	d.indexes()
	for i := range status.Architectures {
		a := d.observe(status.Architectures[i])
		d.arches = append(d.arches, a)
		status.Architectures[i] = a.GoldenImageArchitecture
	}
	d.channels()
	d.standChannels()
	for _, a := range d.arches {
		d.importInto(a)
	}
	d.pointers()
	d.remove()
	d.collect()
	d.conditions()
	return d.plan
}

// decision is the state of Decide.
type decision struct {
	State
	image  *v1alpha1.GoldenImage
	by     importer
	plan   Plan
	arches []*architecture

	conflicts, provided, problems []string
	adopted                       []string
	// failed are tests of images.
	failed []string
}

// architecture is what was observed of one.
type architecture struct {
	v1alpha1.GoldenImageArchitecture
	owner ownership
	// desired is the digest that is to be imported; empty if none is known.
	desired string
	cron    *Cron
	// volume is the one that is being imported into, or was last.
	volume string
	// added is set if its image was not in the history before.
	added bool
	// problem is why the import does not proceed, and unknown why spec.digest names no image.
	problem, unknown string
}

func (d *decision) act(verb Verb, resource schema.GroupVersionResource, name string, object map[string]any) {
	d.plan.Actions = append(d.plan.Actions, Action{verb, resource, name, object})
}

func (d *decision) event(warning bool, reason, message string, arguments ...any) {
	d.plan.Events = append(d.plan.Events, Event{Warning: warning, Reason: reason, Message: fmt.Sprintf(message, arguments...)})
}

// again is called with a time at which the result changes by itself.
func (d *decision) again(at time.Time) {
	if d.plan.Again.IsZero() || at.Before(d.plan.Again) {
		d.plan.Again = at
	}
}

// checked writes the result of a check, and when the next one is.
func (d *decision) checked() {
	status, id := &d.plan.Status, SourceID(d.image)
	schedule, err := NewSchedule(d.image.Spec.Schedule, d.Cluster, d.image.Namespace, d.image.Name)
	if err != nil {
		d.problems = append(d.problems, err.Error())
		status.NextCheckTime = nil
		return
	}
	another := status.CheckedSource != id
	if another {
		// What is known is of the source before.
		for i := range status.Architectures {
			status.Architectures[i].Available = nil
		}
	}
	d.verified(another)
	if d.image.Spec.Suspended {
		// The source is checked at once when the suspension ends.
		status.NextCheckTime = nil
		return
	}
	if d.Check == nil {
		if status.NextCheckTime != nil {
			d.again(status.NextCheckTime.Time)
		}
		return
	}
	if another {
		status.CheckFailures = 0
	}
	status.CheckedSource, status.Refreshed = id, d.image.Annotations[v1alpha1.AnnotationRefresh]
	if d.Check.Err != nil {
		status.CheckFailures++
		status.CheckError = d.Check.Err.Error()
		next := schedule.backOff(d.Now, status.CheckFailures)
		status.NextCheckTime = &next
		reason := EventCheck
		if errors.Is(d.Check.Err, ErrNotSigned) {
			reason = EventUnsigned
		}
		d.event(true, reason, "%s", status.CheckError)
		d.again(next.Time)
		return
	}
	status.CheckFailures, status.CheckError = 0, ""
	now, next := metav1.NewTime(d.Now.Truncate(time.Second)), metav1.NewTime(schedule.Next(d.Now))
	status.LastCheckTime, status.NextCheckTime = &now, &next
	d.again(next.Time)
	for i := range status.Architectures {
		before, found := status.Architectures[i].Available, d.Check.Found[i]
		if before != nil && before.Digest == found.Digest && before.Tag == found.Tag && before.Index == found.Index && before.Reference == found.Reference {
			continue
		}
		if before == nil || before.Digest != found.Digest {
			d.event(false, EventFound, "the newest image is %s%s", found.Digest, ofTag(found.Tag))
		}
		status.Architectures[i].Available = &v1alpha1.AvailableImage{Digest: found.Digest, Index: found.Index, Tag: found.Tag, Reference: found.Reference, FoundAt: now}
	}
	d.verified(false)
}

// aligned returns the stored architectures in the order of the names.
func aligned(stored []v1alpha1.GoldenImageArchitecture, names []string) []v1alpha1.GoldenImageArchitecture {
	found := make([]v1alpha1.GoldenImageArchitecture, len(names))
	for i, name := range names {
		found[i].Name = name
		for _, one := range stored {
			if one.Name == name {
				found[i] = one
			}
		}
	}
	return found
}

// history removes the images whose volumes do not exist.
func (d *decision) history() {
	exists := map[string]bool{}
	for _, volume := range d.Volumes {
		exists[volume.Name] = exists[volume.Name] || volume.Resource != DataVolumes
	}
	d.plan.Status.History = slices.DeleteFunc(d.plan.Status.History, func(image v1alpha1.ImportedImage) bool { return !exists[image.Volume] })
}

// observe returns what is known of an architecture.
func (d *decision) observe(stored v1alpha1.GoldenImageArchitecture) *architecture {
	status := &d.plan.Status
	a := &architecture{GoldenImageArchitecture: stored}
	a.DataSource, a.Progress, a.Current = managed(d.image, a.Name), "", nil
	d.desire(a)
	if !d.trusted(a.desired) {
		a.desired = ""
	}
	d.by.observe(d, a)
	a.owner = d.ownership(a.DataSource, a.DataSource)
	source := d.Sources[a.DataSource]
	if source == nil || a.owner.kind == foreign || a.owner.kind == provided {
		return a
	}
	volume, snapshot := volumeOf(source.Source)
	d.by.take(d, a, volume, snapshot, source.Ready)
	for _, image := range status.History {
		if image.Volume == volume && source.Ready {
			a.Current = &image
		}
	}
	for _, volume := range d.Volumes {
		if volume.Resource == DataVolumes && volume.Name == a.volume && (a.Current == nil || a.Current.Volume != volume.Name) {
			a.Progress, a.problem = volume.Progress, cmp.Or(a.problem, volume.Problem)
		}
	}
	return a
}

func (d *decision) has(volume string) bool {
	return slices.ContainsFunc(d.Volumes, func(v Volume) bool { return v.Name == volume && v.Resource != DataVolumes })
}

// add adds an image that CDI has imported to the history, unless it is there.
func (d *decision) add(a *architecture, digest, volume string, snapshot bool, at *metav1.Time) {
	status := &d.plan.Status
	if slices.ContainsFunc(status.History, func(image v1alpha1.ImportedImage) bool { return image.Volume == volume }) {
		return
	}
	image := v1alpha1.ImportedImage{
		Architecture: a.Name, Digest: digest, ImportedAt: metav1.NewTime(d.Now.Truncate(time.Second)), Volume: volume, Snapshot: snapshot,
	}
	if at != nil {
		image.ImportedAt = *at
	}
	if a.Available != nil && a.Available.Digest == image.Digest {
		image.Tag = a.Available.Tag
		image.Reference = a.Available.Reference
		image.Indexes = withIndex(nil, a.Available.Index)
	}
	status.History = slices.Insert(status.History, 0, image)
	a.added = true
	d.plan.Events = append(d.plan.Events, Event{Reason: EventImported, Volume: volume, Message: fmt.Sprintf(
		"imported %s%s into %s; DataSource %s stands for it", image.Digest, ofTag(image.Tag), volume, a.DataSource)})
}

// importInto writes the DataSource of an architecture and what imports for it.
func (d *decision) importInto(a *architecture) {
	switch a.owner.kind {
	case foreign:
		d.conflicts = append(d.conflicts, a.owner.why)
		return
	case provided:
		d.provided = append(d.provided, a.owner.why)
		// A claim that was uploaded under the name of the DataSource is what it stands for.
		if d.Sources[a.DataSource] == nil {
			d.create(a.DataSource, a.Name, claim(d.image.Namespace, a.DataSource))
		}
		return
	case absent:
		d.create(a.DataSource, a.Name, claim(d.image.Namespace, a.DataSource))
	case adoptable, ours:
		stands, image := d.by.stands(d, a)
		if source := d.Sources[a.DataSource].Source; stands != nil && !reflect.DeepEqual(source, stands) {
			// It is not applied: to apply without it later, as when CDI moves the DataSource again, would remove it. CDI may have written another kind.
			d.act(Patch, DataSources, a.DataSource, map[string]any{"spec": map[string]any{"source": instead(stands, source)}})
		}
		d.write(a.DataSource, d.by.mover(a.DataSource), a.Name, nil, image, a.owner)
	}
	if !d.image.Spec.Suspended && a.desired != "" {
		d.by.proceed(d, a)
	}
}

// pointers writes the DataSources that stand for those of the first architecture.
func (d *decision) pointers() {
	first := d.arches[0]
	if first.Name == "" {
		return
	}
	to := func(name string) map[string]any {
		return map[string]any{"dataSource": map[string]any{"namespace": d.image.Namespace, "name": name}}
	}
	d.stand(base(d.image), "", to(first.DataSource), first.Current)
	for _, c := range d.plan.Status.Channels {
		if c.Architecture == first.Name {
			d.stand(join(base(d.image), c.Name), "", to(c.DataSource), d.find(c.Architecture, c.Digest))
		}
	}
}

// stand makes a DataSource that no DataImportCron moves stand for a source, unless it has another owner.
func (d *decision) stand(name, architecture string, source map[string]any, current *v1alpha1.ImportedImage) {
	switch v := d.ownership(name, ""); v.kind {
	case foreign:
		d.conflicts = append(d.conflicts, v.why)
	case provided:
		d.provided = append(d.provided, v.why)
	default:
		d.write(name, "", architecture, source, current, v)
	}
}

// find returns the imported image with a digest, nil if there is none.
func (d *decision) find(architecture, digest string) *v1alpha1.ImportedImage {
	for i, image := range d.plan.Status.History {
		if image.Digest == digest && image.Architecture == architecture {
			return &d.plan.Status.History[i]
		}
	}
	return nil
}

// volumeOf returns the volume that a source of a DataSource names; empty if it names none.
func volumeOf(source map[string]any) (name string, snapshot bool) {
	for key, snapshot := range map[string]bool{"pvc": false, "snapshot": true} {
		if volume, is := source[key].(map[string]any); is {
			name, _ = volume["name"].(string)
			return name, snapshot
		}
	}
	return "", false
}

func ofTag(tag string) string {
	if tag == "" {
		return ""
	}
	return " (tag " + tag + ")"
}
