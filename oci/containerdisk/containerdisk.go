package containerdisk

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/oci"
)

// owner is the user and the group of QEMU in KubeVirt's containers.
const owner = 107

// tarBlock is the unit of a tar archive in bytes; two of zeros end it.
const tarBlock = 512

// bufferBytes is the number of bytes that are read at once.
const bufferBytes = 1 << 20

// Layer is the tar archive of an image. It implements disk.Image: what is a hole of the file is a hole of the archive.
type Layer struct {
	header  []byte
	content disk.Image
	size    int64
}

// NewLayer returns the archive with a file, which is named after its format. content has the bytes of the file.
func NewLayer(format disk.Format, content disk.Image) (*Layer, error) {
	var header bytes.Buffer
	archive := tar.NewWriter(&header)
	size := content.Info().Size
	for _, each := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "disk/", Mode: 0o755, Uid: owner, Gid: owner},
		{Typeflag: tar.TypeReg, Name: "disk/disk." + string(format), Mode: 0o644, Uid: owner, Gid: owner, Size: size},
	} {
		if err := archive.WriteHeader(&each); err != nil {
			return nil, fmt.Errorf("encoding the archive of a containerDisk: %w", err)
		}
	}
	// The writer is not closed: its end follows the content.
	begin := int64(header.Len())
	padded := (size + tarBlock - 1) / tarBlock * tarBlock
	return &Layer{header: header.Bytes(), content: content, size: begin + padded + 2*tarBlock}, nil
}

// Info implements disk.Image.
func (l *Layer) Info() disk.Info { return disk.Info{Format: disk.Raw, Size: l.size, Unit: 1} }

// ReadAt implements io.ReaderAt.
func (l *Layer) ReadAt(p []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, disk.Raw.Errorf("read at negative offset %d", offset)
	}
	if offset >= l.size {
		return 0, io.EOF
	}
	if left := l.size - offset; int64(len(p)) > left {
		p, err = p[:left], io.EOF
	}
	begin, end := int64(len(l.header)), int64(len(l.header))+l.content.Info().Size
	for n < len(p) {
		switch at := offset + int64(n); {
		case at < begin:
			n += copy(p[n:], l.header[at:])
		case at < end:
			part := p[n:]
			part = part[:min(int64(len(part)), end-at)]
			if err := disk.ReadFull(l.content, part, at-begin); err != nil {
				return n, err
			}
			n += len(part)
		default:
			clear(p[n:])
			n = len(p)
		}
	}
	return n, err
}

// NextData implements disk.Image.
func (l *Layer) NextData(offset int64) (disk.Range, error) {
	begin := int64(len(l.header))
	if offset < begin {
		return disk.Range{Offset: offset, Length: begin - offset}, nil
	}
	found, err := l.content.NextData(offset - begin)
	found.Offset += begin
	return found, err
}

// DiffID returns the digest of the archive as it is, which the config of an image has. progress receives the number of bytes that are done.
func (l *Layer) DiffID(ctx context.Context, progress func(done int64)) (v1.Hash, error) {
	sum, buffer := sha256.New(), make([]byte, bufferBytes)
	for offset := int64(0); offset < l.size; {
		if err := ctx.Err(); err != nil {
			return v1.Hash{}, err
		}
		part := buffer[:min(l.size-offset, bufferBytes)]
		if err := disk.ReadFull(l, part, offset); err != nil {
			return v1.Hash{}, err
		}
		sum.Write(part)
		offset += int64(len(part))
		progress(offset)
	}
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum.Sum(nil))}, nil
}

// Encode makes the image and its config. Of the compressed layer, Size and Digest are read.
func Encode(architecture string, diffID v1.Hash, layer oci.Disk) (_ *oci.Artifact, config []byte, err error) {
	config, err = json.Marshal(v1.ConfigFile{Architecture: architecture, OS: "linux", RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{diffID}}})
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the config of a containerDisk: %w", err)
	}
	layer.Layer = v1.Descriptor{MediaType: types.OCILayerZStd, Size: layer.Layer.Size, Digest: layer.Layer.Digest}
	a := &oci.Artifact{Config: oci.Describe(types.OCIConfigJSON, config), Disks: []oci.Disk{layer}}
	a.Manifest, err = json.Marshal(v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: a.Config, Layers: []v1.Descriptor{layer.Layer}})
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the manifest of a containerDisk: %w", err)
	}
	a.Descriptor = oci.Describe(types.OCIManifestSchema1, a.Manifest)
	return a, config, nil
}
