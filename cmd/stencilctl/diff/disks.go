package diff

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// The annotations of a claim that CDI writes: the source of a clone, NAMESPACE/NAME, and the URL of an import.
const (
	annotationClone    = "k8s.io/CloneRequest"
	annotationEndpoint = "cdi.kubevirt.io/storage.import.endpoint"
)

// kinds are the resources of the objects that disks are copied from.
var kinds = map[string]schema.GroupVersionResource{
	"DataVolume":            {Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"},
	"DataSource":            {Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datasources"},
	"PersistentVolumeClaim": {Version: "v1", Resource: "persistentvolumeclaims"},
	"VolumeSnapshot":        {Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"},
}

// disk is a disk of the VirtualMachine that is created with it, and the image it has.
type disk struct {
	DataVolume string `json:"dataVolume"`
	// ClonedFrom is what it was copied from; absent if that is unknown.
	ClonedFrom *image `json:"clonedFrom,omitempty"`
	// DataSource is NAMESPACE/NAME of the DataSource that the VirtualMachine names, and Now what it stands for.
	DataSource string `json:"dataSource,omitempty"`
	Now        *image `json:"now,omitempty"`
	// Outdated means that a new VirtualMachine gets another image.
	Outdated bool `json:"outdated"`
	// Unknown are the objects that could not be read, and why.
	Unknown []string `json:"unknown,omitempty"`
}

// image is an object that is copied. Its digest is empty if it is unknown.
type image struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Digest    string `json:"digest,omitempty"`
}

func (i *image) String() string {
	text := i.Kind + " " + i.Namespace + "/" + i.Name
	if i.Digest != "" {
		text += " (" + i.Digest + ")"
	}
	return text
}

// get reads an object, nil if there is none; Client.Get of package cluster.
type get func(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (map[string]any, error)

// disks returns the disks of a VirtualMachine that are copied from a DataSource, a claim or a snapshot.
func disks(ctx context.Context, read get, vm machine.Object) ([]disk, error) {
	var all []disk
	namespace := machine.StringAt(vm.Metadata, "namespace")
	for _, one := range machine.MapsAt(vm.Spec, "dataVolumeTemplates") {
		named := machine.MapAt(one, "spec", "sourceRef")
		if named == nil && sourceOf(machine.MapAt(one, "spec"), namespace) == nil {
			continue
		}
		found := disk{DataVolume: machine.StringAt(machine.MapAt(one, "metadata"), "name")}
		r := &reading{Context: ctx, read: read, disk: &found}
		found.ClonedFrom = r.origin(namespace)
		if named != nil {
			r.current(namespace, named)
		}
		if r.err != nil {
			return nil, r.err
		}
		if found.ClonedFrom != nil && found.Now != nil {
			found.settle()
		}
		all = append(all, found)
	}
	return all, nil
}

// settle compares the two images. A copy of the same object has its digest.
func (d *disk) settle() {
	was, now := d.ClonedFrom, d.Now
	same := was.Kind == now.Kind && was.Namespace == now.Namespace && was.Name == now.Name
	if same && was.Digest == "" {
		was.Digest = now.Digest
	}
	if was.Digest != "" && now.Digest != "" {
		same = was.Digest == now.Digest
	}
	d.Outdated = !same
}

// reading reads the objects behind a disk.
type reading struct {
	context.Context
	read get
	disk *disk
	err  error
}

// object reads an object. It returns nil, and stores why, if there is none or the user may not get it.
func (r *reading) object(kind, namespace, name string) map[string]any {
	if r.err != nil {
		return nil
	}
	object, err := r.read(r, kinds[kind], namespace, name)
	text := kind + " " + namespace + "/" + name
	switch {
	case apierrors.IsForbidden(err):
		r.disk.Unknown = append(r.disk.Unknown, text+", which you may not get")
	case err != nil:
		r.err = cluster.Failed("reading "+text, err)
	case object == nil:
		r.disk.Unknown = append(r.disk.Unknown, text+", which does not exist")
	}
	return object
}

// origin returns what the DataVolume of the disk was copied from. KubeVirt and Stencil replace the DataSource by what it stands for when
// they create the DataVolume.
func (r *reading) origin(namespace string) *image {
	volume := r.object("DataVolume", namespace, r.disk.DataVolume)
	from := sourceOf(machine.MapAt(volume, "spec"), namespace)
	if from == nil {
		// CDI may have deleted the DataVolume after the copy.
		claim := r.object("PersistentVolumeClaim", namespace, r.disk.DataVolume)
		source, name, is := strings.Cut(machine.StringAt(machine.MapAt(claim, "metadata", "annotations"), annotationClone), "/")
		if !is {
			return nil
		}
		from, r.disk.Unknown = &image{Kind: "PersistentVolumeClaim", Namespace: source, Name: name}, nil
	}
	from.Digest = digestOf(machine.MapAt(r.object(from.Kind, from.Namespace, from.Name), "metadata", "annotations"))
	return from
}

// current sets what the DataSource of the disk stands for. Like CDI it follows one other DataSource of the same namespace.
func (r *reading) current(namespace string, named map[string]any) {
	if own := machine.StringAt(named, "namespace"); own != "" {
		namespace = own
	}
	name := machine.StringAt(named, "name")
	r.disk.DataSource = namespace + "/" + name
	object := r.object("DataSource", namespace, name)
	digest := digestOf(machine.MapAt(object, "metadata", "annotations"))
	if next := machine.MapAt(object, "spec", "source", "dataSource"); next != nil {
		object = r.object("DataSource", namespace, machine.StringAt(next, "name"))
		if digest == "" {
			digest = digestOf(machine.MapAt(object, "metadata", "annotations"))
		}
	}
	if r.disk.Now = sourceOf(machine.MapAt(object, "spec"), namespace); r.disk.Now != nil {
		r.disk.Now.Digest = digest
	}
}

// sourceOf returns the claim or the snapshot in the source of a DataVolume or a DataSource; nil if it has none.
func sourceOf(spec map[string]any, namespace string) *image {
	for field, kind := range map[string]string{"pvc": "PersistentVolumeClaim", "snapshot": "VolumeSnapshot"} {
		if from := machine.MapAt(spec, "source", field); from != nil {
			found := &image{Kind: kind, Namespace: namespace, Name: machine.StringAt(from, "name")}
			if own := machine.StringAt(from, "namespace"); own != "" {
				found.Namespace = own
			}
			return found
		}
	}
	return nil
}

// digestOf returns the digest in the annotations of a DataSource, or in those of a claim that CDI filled from a registry.
func digestOf(annotations map[string]any) string {
	if digest := machine.StringAt(annotations, v1alpha1.AnnotationImageDigest); digest != "" {
		return digest
	}
	if _, digest, is := strings.Cut(machine.StringAt(annotations, annotationEndpoint), "@"); is && strings.HasPrefix(digest, "sha256:") {
		return digest
	}
	return ""
}

// lines describe a disk for a terminal.
func (d *disk) lines() []string {
	was := "unknown"
	if d.ClonedFrom != nil {
		was = d.ClonedFrom.String()
	}
	lines := []string{"disk " + d.DataVolume, "  cloned from " + was}
	if d.DataSource != "" {
		now := "unknown"
		if d.Now != nil {
			now = d.Now.String()
		}
		lines = append(lines, fmt.Sprintf("  DataSource %s now stands for %s", d.DataSource, now))
	}
	if d.Outdated {
		lines = append(lines, "  the VM keeps the image that it was cloned from; a new VM gets the other one")
	}
	for _, each := range d.Unknown {
		lines = append(lines, "  not read: "+each)
	}
	for i := range lines {
		lines[i] = strings.Map(printable, lines[i])
	}
	return lines
}

// printable replaces characters that control a terminal: users write the annotations and sources of DataSources.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}
