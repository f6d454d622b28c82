package goldenimage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
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
	d := &decision{State: s, image: s.Image}
	d.plan.Status = *s.Image.Status.DeepCopy()
	status := &d.plan.Status
	if s.Image.DeletionTimestamp != nil {
		d.release()
		return d.plan
	}
	d.plan.Finalizer = true
	status.ObservedGeneration, status.DataSource = s.Image.Generation, base(s.Image)
	d.checked()
	d.history()
	for i, architecture := range architectures(s.Image) {
		d.arches = append(d.arches, d.observe(i, architecture))
	}
	status.Architectures = nil
	for _, a := range d.arches {
		status.Architectures = append(status.Architectures, a.GoldenImageArchitecture)
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
	plan   Plan
	arches []*architecture

	conflicts, provided, problems []string
	adopted                       []string
}

// architecture is what was observed of one.
type architecture struct {
	v1alpha1.GoldenImageArchitecture
	owner ownership
	// desired is the digest that is to be imported; empty if none is known.
	desired string
	cron    *Cron
	// problem is why the import does not proceed.
	problem string
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
	if status.CheckedSource != id && d.Check == nil && status.CheckedSource != "" {
		// What is known is of another source.
		for i := range status.Architectures {
			status.Architectures[i].Available = nil
		}
	}
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
	if status.CheckedSource != id {
		status.Architectures, status.CheckFailures = availableOnly(nil, status.Architectures), 0
	}
	status.CheckedSource, status.Refreshed = id, d.image.Annotations[v1alpha1.AnnotationRefresh]
	if d.Check.Err != nil {
		status.CheckFailures++
		status.CheckError = cut(d.Check.Err.Error())
		next := schedule.backOff(d.Now, status.CheckFailures)
		status.NextCheckTime = &next
		d.event(true, EventCheck, "%s", status.CheckError)
		d.again(next.Time)
		return
	}
	status.CheckFailures, status.CheckError = 0, ""
	now, next := metav1.NewTime(d.Now.Truncate(time.Second)), metav1.NewTime(schedule.Next(d.Now))
	status.LastCheckTime, status.NextCheckTime = &now, &next
	d.again(next.Time)
	status.Architectures = availableOnly(func(i int, before *v1alpha1.AvailableImage) *v1alpha1.AvailableImage {
		found := d.Check.Found[i]
		if before != nil && before.Digest == found.Digest && before.Tag == found.Tag {
			return before
		}
		if before == nil || before.Digest != found.Digest {
			d.event(false, EventFound, "the newest image is %s%s", found.Digest, ofTag(found.Tag))
		}
		return &v1alpha1.AvailableImage{Digest: found.Digest, Tag: found.Tag, FoundAt: now}
	}, aligned(status.Architectures, architectures(d.image)))
}

// availableOnly returns the architectures with another available image; none without a function.
func availableOnly(next func(int, *v1alpha1.AvailableImage) *v1alpha1.AvailableImage, arches []v1alpha1.GoldenImageArchitecture) []v1alpha1.GoldenImageArchitecture {
	arches = slices.Clone(arches)
	for i := range arches {
		if next == nil {
			arches[i].Available = nil
		} else {
			arches[i].Available = next(i, arches[i].Available)
		}
	}
	return arches
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
func (d *decision) observe(i int, name string) *architecture {
	status := &d.plan.Status
	a := &architecture{GoldenImageArchitecture: aligned(status.Architectures, architectures(d.image))[i]}
	a.DataSource, a.Progress, a.Current = managed(d.image, name), "", nil
	a.cron = d.Crons[a.DataSource]
	a.desired = d.image.Spec.Digest
	if a.desired == "" && a.Available != nil {
		a.desired = a.Available.Digest
	}
	if a.desired == "" && a.cron != nil {
		a.desired = a.cron.Annotations[annotationDesired]
	}
	a.owner = d.ownership(a.DataSource, a.DataSource)
	source := d.Sources[a.DataSource]
	if source == nil || a.owner.kind == foreign || a.owner.kind == provided {
		return a
	}
	volume, snapshot := volumeOf(source.Source)
	// CDI moves the DataSource before it writes the status.
	if a.cron != nil && a.cron.Volume == volume && a.cron.Imported == volume && a.cron.Digest != "" && source.Ready && volume != "" && d.has(volume) {
		d.add(a, volume, snapshot)
	}
	for _, image := range status.History {
		if image.Volume == volume && source.Ready {
			a.Current = &image
		}
	}
	for _, volume := range d.Volumes {
		if a.cron != nil && volume.Resource == DataVolumes && volume.Name == a.cron.Volume && (a.Current == nil || a.Current.Volume != volume.Name) {
			a.Progress, a.problem = volume.Progress, cmp.Or(volume.Problem, a.problem)
		}
	}
	return a
}

func (d *decision) has(volume string) bool {
	return slices.ContainsFunc(d.Volumes, func(v Volume) bool { return v.Name == volume && v.Resource != DataVolumes })
}

// add adds an image that CDI has imported to the history.
func (d *decision) add(a *architecture, volume string, snapshot bool) {
	status := &d.plan.Status
	if slices.ContainsFunc(status.History, func(image v1alpha1.ImportedImage) bool { return image.Volume == volume }) {
		return
	}
	image := v1alpha1.ImportedImage{
		Architecture: a.Name, Digest: a.cron.Digest, ImportedAt: metav1.NewTime(d.Now.Truncate(time.Second)), Volume: volume, Snapshot: snapshot,
	}
	if a.cron.ImportedAt != nil {
		image.ImportedAt = *a.cron.ImportedAt
	}
	if a.Available != nil && a.Available.Digest == image.Digest {
		image.Tag = a.Available.Tag
	}
	status.History = slices.Insert(status.History, 0, image)
	d.plan.Events = append(d.plan.Events, Event{Reason: EventImported, Volume: volume, Message: fmt.Sprintf(
		"imported %s%s into %s; DataSource %s stands for it", image.Digest, ofTag(image.Tag), volume, a.DataSource)})
}

// importInto writes the DataSource and the DataImportCron of an architecture.
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
		d.write(a.DataSource, a.DataSource, a.Name, nil, a.Current, a.owner)
	}
	template := d.template(a)
	switch {
	case d.image.Spec.Suspended || a.desired == "":
	case a.cron == nil:
		d.act(Create, DataImportCrons, a.DataSource, template)
	case a.cron.Labels[v1alpha1.LabelGoldenImage] != d.image.Name:
		d.conflicts = append(d.conflicts, fmt.Sprintf("DataImportCron %s exists and was not made for this GoldenImage: delete or rename one of them", a.DataSource))
	case a.cron.Deleting:
	case a.cron.Annotations[annotationTemplate] != annotationOf(template, annotationTemplate):
		// Its spec is immutable. Its retention policy keeps the volumes, which the next one finds by their digests.
		d.act(Delete, DataImportCrons, a.DataSource, nil)
	case a.cron.Annotations[annotationDesired] != a.desired:
		d.act(Patch, DataImportCrons, a.DataSource, map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotationDesired: a.desired}}})
	}
}

// create makes a DataSource of the image.
func (d *decision) create(name, architecture string, source map[string]any) {
	cron := ""
	if slices.Contains(Managed(d.image), name) && !d.Provided[name] {
		cron = name
	}
	object := d.object(kindDataSource, name, labels(d.image, cron, architecture), map[string]any{v1alpha1.AnnotationGoldenImage: d.image.Name})
	object["metadata"].(map[string]any)["ownerReferences"] = []any{d.owner(true)}
	object["spec"] = map[string]any{"source": source}
	d.act(Create, DataSources, name, object)
}

// write makes a DataSource have the labels and annotations of the image, and stand for a source unless that is nil.
func (d *decision) write(name, cron, architecture string, stands map[string]any, current *v1alpha1.ImportedImage, v ownership) {
	source := d.Sources[name]
	annotations := map[string]any{v1alpha1.AnnotationGoldenImage: d.image.Name}
	maps.Copy(annotations, d.about(current))
	previous := ""
	if source != nil {
		previous = source.Annotations[v1alpha1.AnnotationPreviousSource]
	}
	if v.kind == adoptable {
		text, _ := json.Marshal(source.Source)
		previous = string(text)
		d.event(false, EventAdopted, "took over DataSource %s, which stood for %s", name, previous)
	}
	if previous != "" {
		annotations[v1alpha1.AnnotationPreviousSource] = previous
		d.adopted = append(d.adopted, name)
	}
	object := d.object(kindDataSource, name, labels(d.image, cron, architecture), annotations)
	if owners := d.owners(source, previous != ""); owners != nil {
		object["metadata"].(map[string]any)["ownerReferences"] = owners
	}
	if stands != nil {
		object["spec"] = map[string]any{"source": stands}
	}
	if source == nil || !covers(source, object) || stands != nil && !reflect.DeepEqual(source.Source, stands) {
		d.act(Apply, DataSources, name, object)
	}
}

// owners returns the owner references that this GoldenImage has on a DataSource. One that it made is deleted with it, unless retention keeps
// it; one that was taken over only if all its other owners are gone as well, and never if it had none.
func (d *decision) owners(source *DataSource, adopted bool) []any {
	if !adopted {
		return []any{d.owner(true)}
	}
	if slices.ContainsFunc(source.Owners, func(owner metav1.OwnerReference) bool { return owner.UID != d.image.UID }) {
		return []any{d.owner(false)}
	}
	return nil
}

func (d *decision) owner(controller bool) map[string]any {
	return map[string]any{
		"apiVersion": kindGoldenImage.GroupVersion().String(), "kind": kindGoldenImage.Kind, "name": d.image.Name, "uid": string(d.image.UID),
		"controller": controller, "blockOwnerDeletion": false,
	}
}

func (d *decision) object(kind schema.GroupVersionKind, name string, labels, annotations map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind,
		"metadata": map[string]any{"namespace": d.image.Namespace, "name": name, "labels": labels, "annotations": annotations},
	}
}

// about returns the annotations that describe the image that a DataSource stands for.
func (d *decision) about(current *v1alpha1.ImportedImage) map[string]any {
	if current == nil {
		return nil
	}
	made := map[string]any{
		v1alpha1.AnnotationImageDigest:     current.Digest,
		v1alpha1.AnnotationImageImportedAt: current.ImportedAt.UTC().Format(time.RFC3339),
	}
	if limit := d.image.Spec.StaleAfter; limit != nil {
		made[v1alpha1.AnnotationImageStaleAfter] = current.ImportedAt.Add(limit.Duration).UTC().Format(time.RFC3339)
	}
	return made
}

// template returns the DataImportCron of an architecture.
func (d *decision) template(a *architecture) map[string]any {
	registry, storage := d.image.Spec.Source.Registry, d.image.Spec.Storage
	from := map[string]any{"url": "docker://" + strings.TrimPrefix(registry.URL, "docker://"), "pullMethod": cmp.Or(string(registry.PullMethod), string(v1alpha1.PullByPod))}
	if registry.SecretRef != "" {
		from["secretRef"] = registry.SecretRef
	}
	if registry.CertConfigMap != "" {
		from["certConfigMap"] = registry.CertConfigMap
	}
	if a.Name != "" {
		from["platform"] = map[string]any{"architecture": a.Name}
	}
	volume := map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": storage.Size.String()}}}
	if storage.StorageClassName != "" {
		volume["storageClassName"] = storage.StorageClassName
	}
	if len(storage.AccessModes) > 0 {
		modes := make([]any, len(storage.AccessModes))
		for i, mode := range storage.AccessModes {
			modes[i] = mode
		}
		volume["accessModes"] = modes
	}
	spec := map[string]any{
		"schedule":          "",
		"managedDataSource": a.DataSource,
		// CDI deletes what was used least recently, channels and running clones or not: see collect.
		"garbageCollect": "Never",
		// A DataImportCron is deleted to change it too, so that it must not delete what it has imported.
		"retentionPolicy": "All",
		"template":        map[string]any{"spec": map[string]any{"source": map[string]any{"registry": from}, "storage": volume}},
	}
	object := d.object(kindDataImport, a.DataSource, map[string]any{v1alpha1.LabelGoldenImage: d.image.Name},
		map[string]any{annotationDesired: a.desired, annotationTemplate: fingerprint(spec)})
	object["metadata"].(map[string]any)["ownerReferences"] = []any{d.owner(true)}
	object["spec"] = spec
	return object
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

// covers reports whether a DataSource has the labels, annotations and owners of an object, and no annotation of ours besides.
func covers(source *DataSource, object map[string]any) bool {
	metadata := object["metadata"].(map[string]any)
	for key, value := range metadata["labels"].(map[string]any) {
		if source.Labels[key] != value {
			return false
		}
	}
	annotations := metadata["annotations"].(map[string]any)
	for key, value := range annotations {
		if source.Annotations[key] != value {
			return false
		}
	}
	for _, key := range []string{v1alpha1.AnnotationImageDigest, v1alpha1.AnnotationImageImportedAt, v1alpha1.AnnotationImageStaleAfter} {
		if _, wanted := annotations[key]; !wanted && source.Annotations[key] != "" {
			return false
		}
	}
	owners, _ := metadata["ownerReferences"].([]any)
	for _, owner := range owners {
		if !slices.ContainsFunc(source.Owners, func(o metav1.OwnerReference) bool { return string(o.UID) == owner.(map[string]any)["uid"] }) {
			return false
		}
	}
	return true
}

func annotationOf(object map[string]any, key string) string {
	text, _ := object["metadata"].(map[string]any)["annotations"].(map[string]any)[key].(string)
	return text
}

func claim(namespace, name string) map[string]any {
	return map[string]any{"pvc": map[string]any{"namespace": namespace, "name": name}}
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

// find returns the imported image with a digest, nil if there is none.
func (d *decision) find(architecture, digest string) *v1alpha1.ImportedImage {
	for i, image := range d.plan.Status.History {
		if image.Digest == digest && image.Architecture == architecture {
			return &d.plan.Status.History[i]
		}
	}
	return nil
}

// maximumMessage is the maximum length of a message in bytes.
const maximumMessage = 1024

func cut(text string) string {
	if len(text) <= maximumMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maximumMessage-len("…")], "") + "…"
}
