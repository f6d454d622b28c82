package goldenimage

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// create makes a DataSource of the image.
func (d *decision) create(name, architecture string, source map[string]any) {
	cron := ""
	if slices.Contains(Managed(d.image), name) && !d.Provided[name] {
		cron = d.by.mover(name)
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

// instead returns a source as a merge patch of another: such a patch keeps fields that it does not name.
func instead(source, of map[string]any) map[string]any {
	patch := maps.Clone(source)
	for kind := range of {
		if _, again := source[kind]; !again {
			patch[kind] = nil
		}
	}
	return patch
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
	spec := map[string]any{
		"schedule":          "",
		"managedDataSource": a.DataSource,
		// CDI deletes what was used least recently, channels and running clones or not: see collect.
		"garbageCollect": "Never",
		// A DataImportCron is deleted to change it too, so that it must not delete what it has imported.
		"retentionPolicy": "All",
		"template":        map[string]any{"spec": map[string]any{"source": d.source(a), "storage": storageOf(d.image)}},
	}
	object := d.object(kindDataImport, a.DataSource, map[string]any{v1alpha1.LabelGoldenImage: d.image.Name}, d.desired(a))
	object["metadata"].(map[string]any)["annotations"].(map[string]any)[AnnotationTemplate] = fingerprint(spec)
	object["metadata"].(map[string]any)["ownerReferences"] = []any{d.owner(true)}
	object["spec"] = spec
	return object
}

// storageOf returns the field storage of a DataVolume of an image.
func storageOf(image *v1alpha1.GoldenImage) map[string]any {
	storage := image.Spec.Storage
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
	return volume
}

// source returns the source of a DataVolume that imports the image.
func (d *decision) source(a *architecture) map[string]any {
	if claimed := d.image.Spec.Source.PVC; claimed != nil {
		return claim(d.image.Namespace, claimed.Name)
	}
	registry := d.image.Spec.Source.Registry
	if registry.ImageStream != "" {
		return map[string]any{"registry": map[string]any{
			"imageStream": registry.ImageStream + ":" + cmp.Or(registry.Tag, DefaultTag), "pullMethod": string(v1alpha1.PullByNode),
		}}
	}
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
	return map[string]any{"registry": from}
}

// desired returns the annotations of a DataImportCron by which CDI imports an image.
func (d *decision) desired(a *architecture) map[string]any {
	made := map[string]any{annotationDesired: a.desired}
	if image := d.find(a.Name, a.desired); image != nil && image.Reference != "" {
		made[annotationReference] = image.Reference
	} else if a.Available != nil && a.Available.Digest == a.desired && a.Available.Reference != "" {
		made[annotationReference] = a.Available.Reference
	}
	return made
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
