package disks

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kinds of objects that a disk can be copied from, or be.
const (
	DataSourceKind = "DataSource"
	ClaimKind      = "PersistentVolumeClaim"
	SnapshotKind   = "VolumeSnapshot"
)

// Source is what the content of a disk of a VirtualMachine comes from: an object of the cluster, a container image, or something without an identity.
type Source struct {
	// Field is the path of the source in the VirtualMachine.
	Field string
	// Kind, Namespace and Name are those of an object; empty for images.
	Kind, Namespace, Name string
	// Digest of an image, as in sha256:…; empty for objects.
	Digest string
	// Problem describes why the source has no identity.
	Problem string
}

// Same reports whether both are the same source, regardless of their field.
func (s Source) Same(other Source) bool {
	s.Field, other.Field = "", ""
	return s == other
}

// emptyVolumes are the volumes that have no content of their own, or content that the VirtualMachine itself, Kubernetes or KubeVirt writes.
var emptyVolumes = map[string]bool{
	"cloudInitNoCloud": true, "cloudInitConfigDrive": true, "configMap": true, "secret": true, "sysprep": true, "serviceAccount": true,
	"downwardAPI": true, "downwardMetrics": true, "emptyDisk": true, "memoryDump": true,
}

// Sources returns what the disks in the spec of a VirtualMachine in a namespace come from, in their order. A blank disk comes from nothing. An
// unsupported source has a Problem.
func Sources(spec map[string]any, namespace string) []Source {
	var found []Source
	templated := map[string]bool{}
	path := field.NewPath("spec", "dataVolumeTemplates")
	for i, entry := range list(spec, "dataVolumeTemplates") {
		templated[text(object(object(entry)["metadata"])["name"])] = true
		found = append(found, filledFrom(path.Index(i).Child("spec"), object(object(entry)["spec"]), namespace)...)
	}
	guest, path := object(object(spec["template"])["spec"]), field.NewPath("spec", "template", "spec")
	for i, entry := range list(guest, "volumes") {
		found = append(found, volumeSources(path.Child("volumes").Index(i), object(entry), namespace, templated)...)
	}
	if boot := object(object(object(guest["domain"])["firmware"])["kernelBoot"]); boot["container"] != nil {
		found = append(found, image(path.Child("domain", "firmware", "kernelBoot", "container", "image"), text(object(boot["container"])["image"])))
	}
	return found
}

// filledFrom returns what a DataVolume is filled from. CDI permits one source; whatever is there is returned.
func filledFrom(path *field.Path, spec map[string]any, namespace string) []Source {
	var found []Source
	if from, is := spec["sourceRef"]; is && from != nil {
		kind := text(object(from)["kind"])
		if kind == DataSourceKind {
			found = append(found, reference(path.Child("sourceRef"), kind, object(from), namespace))
		} else {
			found = append(found, Source{Field: path.Child("sourceRef").String(), Problem: fmt.Sprintf("kind %q is not known", kind)})
		}
	}
	source := object(spec["source"])
	for _, key := range slices.Sorted(maps.Keys(source)) {
		from := source[key]
		at := path.Child("source", key)
		switch {
		case key == "blank" || from == nil:
		case key == "pvc":
			found = append(found, reference(at, ClaimKind, object(from), namespace))
		case key == "snapshot":
			found = append(found, reference(at, SnapshotKind, object(from), namespace))
		case key == "registry" && object(from)["imageStream"] == nil:
			found = append(found, image(at.Child("url"), text(object(from)["url"])))
		default:
			found = append(found, Source{Field: at.String(), Problem: "what it holds can be replaced at any time"})
		}
	}
	for _, claim := range []string{"storage", "pvc"} {
		for _, key := range []string{"dataSource", "dataSourceRef"} {
			from := object(object(spec[claim])[key])
			if from == nil {
				continue
			}
			at := path.Child(claim, key)
			if kind := text(from["kind"]); kind == ClaimKind || kind == SnapshotKind {
				found = append(found, reference(at, kind, from, namespace))
			} else {
				found = append(found, Source{Field: at.String(), Problem: fmt.Sprintf("kind %q is not known", kind)})
			}
		}
		if text(object(spec[claim])["volumeName"]) != "" {
			found = append(found, Source{Field: path.Child(claim, "volumeName").String(), Problem: "it names a PersistentVolume"})
		}
	}
	return found
}

func volumeSources(path *field.Path, volume map[string]any, namespace string, templated map[string]bool) []Source {
	var found []Source
	for _, key := range slices.Sorted(maps.Keys(volume)) {
		at, value := path.Child(key), volume[key]
		from := object(value)
		switch {
		case key == "name" || value == nil || emptyVolumes[key]:
		case key == "containerDisk":
			found = append(found, image(at.Child("image"), text(from["image"])))
		case key == "dataVolume" && templated[text(from["name"])], key == "persistentVolumeClaim" && templated[text(from["claimName"])]:
		case key == "dataVolume": // its claim has its name
			found = append(found, Source{Field: at.Child("name").String(), Kind: ClaimKind, Namespace: namespace, Name: text(from["name"])})
		case key == "persistentVolumeClaim":
			found = append(found, Source{Field: at.Child("claimName").String(), Kind: ClaimKind, Namespace: namespace, Name: text(from["claimName"])})
		case key == "ephemeral":
			claim := text(object(from["persistentVolumeClaim"])["claimName"])
			found = append(found, Source{Field: at.Child("persistentVolumeClaim", "claimName").String(), Kind: ClaimKind, Namespace: namespace, Name: claim})
		default:
			found = append(found, Source{Field: at.String(), Problem: "what it holds can be replaced at any time"})
		}
	}
	return found
}

// reference is an object that may have a namespace.
func reference(path *field.Path, kind string, from map[string]any, namespace string) Source {
	if own := text(from["namespace"]); own != "" {
		namespace = own
	}
	return Source{Field: path.String(), Kind: kind, Namespace: namespace, Name: text(from["name"])}
}

var digest = regexp.MustCompile(`^.+@(sha256:[0-9a-f]{64})$`)

// image is a container image. Tags of registries can be changed, so that only a digest identifies the image.
func image(path *field.Path, name string) Source {
	if match := digest.FindStringSubmatch(strings.TrimSpace(name)); match != nil {
		return Source{Field: path.String(), Digest: match[1]}
	}
	return Source{Field: path.String(), Problem: "the image is not named by its digest, as in NAME@sha256:…"}
}
