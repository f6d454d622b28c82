package oci

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Limits of artifacts.
const (
	// MaxManifestBytes is the largest size of a manifest, and of an index: what registries have to accept.
	MaxManifestBytes = 4 << 20
	// MaxConfigBytes is the largest size of the resource. Kubernetes stores objects of up to 1.5 MiB.
	MaxConfigBytes = 4 << 20
	// MaxDisks is the maximum number of layers.
	MaxDisks = 256
	// MaxDiskBytes is the largest size of a disk, as disk.MaxSize.
	MaxDiskBytes = int64(64) << 40
)

// DiskType is the media type of a layer: a raw disk, compressed by zstd.
const DiskType types.MediaType = "application/vnd.kubevirt.disk.raw+zstd"

// Annotations of a layer.
const (
	// NameAnnotation is the name of the PersistentVolumeClaim, with hyphens instead of dots.
	NameAnnotation = "io.kubevirt.disk.name"
	// SizeAnnotation is the size of the disk, a quantity.
	SizeAnnotation = "io.kubevirt.disk.size"
	// titleAnnotation is the name of a file for tools that store layers as files.
	titleAnnotation = "org.opencontainers.image.title"
)

// Kind is the kind of the resource in an artifact.
type Kind string

// The kinds.
const (
	VirtualMachine         Kind = "VirtualMachine"
	VirtualMachineTemplate Kind = "VirtualMachineTemplate"
)

// ArtifactType is the type of an artifact with the resource.
func (k Kind) ArtifactType() string {
	return "application/vnd.kubevirt." + strings.ToLower(string(k)) + ".v1"
}

// ConfigType is the media type of the resource.
func (k Kind) ConfigType() types.MediaType {
	return types.MediaType("application/vnd.kubevirt." + strings.ToLower(string(k)) + ".config.v1+json")
}

// Error reports an artifact that is malformed, or none of KubeVirt.
type Error struct {
	Problem string
	// cause is the error of the reader, if it is one.
	cause error
}

func (e *Error) Error() string { return "OCI artifact: " + e.Problem }

// Unwrap returns the error of the reader of an archive, which may be one of the network.
func (e *Error) Unwrap() error { return e.cause }

func errorf(format string, arguments ...any) error {
	return &Error{Problem: fmt.Sprintf(format, arguments...)}
}

// Artifact is the content of a manifest.
type Artifact struct {
	// Kind is empty for a container image.
	Kind Kind
	// Manifest is as it is stored. Descriptor is what refers to it.
	Manifest   []byte
	Descriptor v1.Descriptor
	Config     v1.Descriptor
	Disks      []Disk
	// Ignored are layers of other types, which KubeVirt's import ignores.
	Ignored []v1.Descriptor
}

// Disk is a layer with a disk.
type Disk struct {
	// Name is unique in the artifact: lower case letters, digits and hyphens, at most 253.
	Name string
	// Size of the disk in bytes, at least 1.
	Size  int64
	Layer v1.Descriptor
}

// Blobs are the config and the layers with disks.
func (a *Artifact) Blobs() []v1.Descriptor {
	all := []v1.Descriptor{a.Config}
	for _, disk := range a.Disks {
		all = append(all, disk.Layer)
	}
	return all
}

// Encode makes an artifact. Of the layers of the disks, Size and Digest are read. Spaces at the end of the manifest make its length independent of their
// sizes, so that CreateTar can write it after them.
func Encode(kind Kind, config []byte, disks []Disk) (*Artifact, error) {
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: kind.ArtifactType(), Config: Describe(kind.ConfigType(), config), Layers: []v1.Descriptor{}}
	for _, disk := range disks {
		manifest.Layers = append(manifest.Layers, v1.Descriptor{MediaType: DiskType, Size: disk.Layer.Size, Digest: disk.Layer.Digest, Annotations: map[string]string{
			NameAnnotation: disk.Name, SizeAnnotation: resource.NewQuantity(disk.Size, resource.BinarySI).String(), titleAnnotation: disk.Name + ".raw.zst",
		}})
	}
	raw, err := json.Marshal(manifest)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	const longest = len("9223372036854775807")
	for _, disk := range disks {
		raw = append(raw, strings.Repeat(" ", max(longest-len(strconv.FormatInt(disk.Layer.Size, 10)), 0))...)
	}
	return Decode(raw)
}

// Describe returns the descriptor of a content.
func Describe(mediaType types.MediaType, content []byte) v1.Descriptor {
	sum := sha256.Sum256(content)
	return v1.Descriptor{MediaType: mediaType, Size: int64(len(content)), Digest: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}}
}

// Decode reads a manifest.
func Decode(manifest []byte) (*Artifact, error) {
	if len(manifest) > MaxManifestBytes {
		return nil, errorf("the manifest has more than %d bytes", MaxManifestBytes)
	}
	var m v1.Manifest
	if err := json.Unmarshal(manifest, &m); err != nil {
		return nil, errorf("the manifest cannot be read: %v", err)
	}
	if m.SchemaVersion != 2 || m.MediaType != types.OCIManifestSchema1 {
		return nil, errorf("the manifest has version %d and type %q; want 2 and %q", m.SchemaVersion, m.MediaType, types.OCIManifestSchema1)
	}
	a := &Artifact{Manifest: manifest, Descriptor: Describe(types.OCIManifestSchema1, manifest), Config: m.Config}
	for _, kind := range []Kind{VirtualMachine, VirtualMachineTemplate} {
		if m.ArtifactType == kind.ArtifactType() {
			a.Kind = kind
		}
	}
	switch {
	case a.Kind == "":
		return nil, errorf("the artifact has type %q; want %q or %q", m.ArtifactType, VirtualMachineTemplate.ArtifactType(), VirtualMachine.ArtifactType())
	case m.Config.MediaType != a.Kind.ConfigType():
		return nil, errorf("the config has type %q; want %q", m.Config.MediaType, a.Kind.ConfigType())
	case m.Config.Size > MaxConfigBytes:
		return nil, errorf("the config has %d bytes; at most %d are allowed", m.Config.Size, MaxConfigBytes)
	case len(m.Layers) > MaxDisks:
		return nil, errorf("there are %d layers; at most %d are allowed", len(m.Layers), MaxDisks)
	}
	if err := check("the config", m.Config); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for i, layer := range m.Layers {
		if layer.MediaType != DiskType {
			a.Ignored = append(a.Ignored, layer)
			continue
		}
		disk, err := decodeDisk(i, layer)
		if err != nil {
			return nil, err
		}
		if names[disk.Name] {
			return nil, errorf("two layers are the disk %q", disk.Name)
		}
		names[disk.Name] = true
		a.Disks = append(a.Disks, disk)
	}
	return a, nil
}

// check rejects a descriptor whose content cannot be verified.
func check(what string, d v1.Descriptor) error {
	switch {
	case d.Digest.Algorithm != "sha256":
		return errorf("%s has a digest of %q; want sha256", what, d.Digest.Algorithm)
	case d.Size < 1:
		return errorf("%s has %d bytes", what, d.Size)
	case len(d.URLs) > 0:
		return errorf("%s is stored at another address, %q; want one that is part of the artifact", what, d.URLs[0])
	}
	return nil
}

func decodeDisk(number int, layer v1.Descriptor) (Disk, error) {
	what := fmt.Sprintf("layer %d", number)
	disk := Disk{Name: layer.Annotations[NameAnnotation], Layer: layer}
	if err := check(what, layer); err != nil {
		return disk, err
	}
	if problems := validation.IsDNS1123Subdomain(disk.Name); len(problems) > 0 || strings.Contains(disk.Name, ".") {
		return disk, errorf("%s has the annotation %s: %.80q; want lower case letters, digits and hyphens", what, NameAnnotation, disk.Name)
	}
	text := layer.Annotations[SizeAnnotation]
	size, err := resource.ParseQuantity(text)
	if err != nil {
		return disk, errorf("%s, disk %q, has the annotation %s: %.80q; want a quantity", what, disk.Name, SizeAnnotation, text)
	}
	if disk.Size = size.Value(); disk.Size < 1 || disk.Size > MaxDiskBytes || size.CmpInt64(disk.Size) != 0 {
		return disk, errorf("%s, disk %q, has %.80s bytes; want whole bytes, 1 to %d", what, disk.Name, text, MaxDiskBytes)
	}
	return disk, nil
}

// Choose returns the descriptor of the one manifest in an index, with its digest.
func Choose(index []byte) (v1.Descriptor, error) {
	if len(index) > MaxManifestBytes {
		return v1.Descriptor{}, errorf("the index has more than %d bytes", MaxManifestBytes)
	}
	var m v1.IndexManifest
	if err := json.Unmarshal(index, &m); err != nil {
		return v1.Descriptor{}, errorf("the index cannot be read: %v", err)
	}
	if len(m.Manifests) != 1 {
		return v1.Descriptor{}, errorf("the index has %d manifests; want one", len(m.Manifests))
	}
	chosen := m.Manifests[0]
	if chosen.MediaType != types.OCIManifestSchema1 {
		return chosen, errorf("the index refers to a manifest of type %q; want %q", chosen.MediaType, types.OCIManifestSchema1)
	}
	if chosen.Size > MaxManifestBytes {
		return chosen, errorf("the manifest has %d bytes; at most %d are allowed", chosen.Size, MaxManifestBytes)
	}
	return chosen, check("the manifest", chosen)
}
