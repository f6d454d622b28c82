package oci

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"io/fs"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Names of files in a layout.
const (
	LayoutFile = "oci-layout"
	indexFile  = "index.json"
	blobs      = "blobs"
)

// layoutVersion is the one version of layouts.
const layoutVersion = "1.0.0"

// BlobName is the name of the file of a blob in a layout.
func BlobName(digest v1.Hash) string { return path.Join(blobs, digest.Algorithm, digest.Hex) }

// Layout is an artifact in a layout.
type Layout struct {
	*Artifact
	Resource *Resource
	files    fs.FS
}

// NewLayout returns a layout that has the layers of an artifact.
func NewLayout(a *Artifact, r *Resource, files fs.FS) *Layout { return &Layout{a, r, files} }

// Open reads the artifact in a layout: a folder, or what [OpenTar] returns. Index, manifest and config are verified. All layers are present with their
// sizes; [Layout.Blob] verifies their digests.
func Open(files fs.FS) (*Layout, error) {
	raw, err := read(files, LayoutFile, MaxManifestBytes)
	if err != nil {
		return nil, err
	}
	var version struct {
		Version string `json:"imageLayoutVersion"`
	}
	if err := json.Unmarshal(raw, &version); err != nil || version.Version != layoutVersion {
		return nil, errorf("%s has the version %.80q; want %q", LayoutFile, version.Version, layoutVersion)
	}
	if raw, err = read(files, indexFile, MaxManifestBytes); err != nil {
		return nil, err
	}
	chosen, err := Choose(raw)
	if err != nil {
		return nil, err
	}
	l := &Layout{files: files}
	if raw, err = l.Content(chosen); err != nil {
		return nil, err
	}
	if l.Artifact, err = Decode(raw); err != nil {
		return nil, err
	}
	for _, blob := range l.Blobs() {
		info, err := fs.Stat(files, BlobName(blob.Digest))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errorf("the blob %s is missing", blob.Digest)
		}
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() || info.Size() != blob.Size {
			return nil, errorf("the blob %s has %d bytes; want %d", blob.Digest, info.Size(), blob.Size)
		}
	}
	if raw, err = l.Content(l.Config); err != nil {
		return nil, err
	}
	l.Resource, err = DecodeResource(l.Kind, raw)
	return l, err
}

// Content returns the content of a small blob: the config.
func (l *Layout) Content(d v1.Descriptor) ([]byte, error) {
	reader, err := l.Blob(d)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(reader)
	return raw, errors.Join(err, reader.Close())
}

// Blob opens a blob. Its reader ends with an Error if size or digest are others.
func (l *Layout) Blob(d v1.Descriptor) (io.ReadCloser, error) {
	file, err := l.files.Open(BlobName(d.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errorf("the blob %s is missing", d.Digest)
	}
	if err != nil {
		return nil, err
	}
	return &verified{Verify(file, d), file}, nil
}

type verified struct {
	io.Reader
	io.Closer
}

// read reads a small file.
func read(files fs.FS, name string, limit int64) ([]byte, error) {
	file, err := files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errorf("%s is missing; want a layout, as virtctl and skopeo write it", name)
	}
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if int64(len(raw)) > limit {
		return nil, errorf("%s has more than %d bytes", name, limit)
	}
	return raw, nil
}

// Verify returns a reader that ends with an Error if the content is not that of a descriptor. It reads at most one byte more than the descriptor's size.
func Verify(r io.Reader, d v1.Descriptor) io.Reader {
	return &verifier{from: io.LimitReader(r, d.Size+1), of: d, sum: sha256.New()}
}

type verifier struct {
	from io.Reader
	of   v1.Descriptor
	sum  hash.Hash
	size int64
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.from.Read(p)
	v.size += int64(n)
	v.sum.Write(p[:n])
	if v.size > v.of.Size || errors.Is(err, io.EOF) {
		if different := Compare(v.of, v.size, v.sum); different != nil {
			return 0, different
		}
	}
	return n, err
}

// Compare returns an Error if the size or the SHA-256 of a content are not those of a descriptor.
func Compare(d v1.Descriptor, size int64, sum hash.Hash) error {
	if size > d.Size {
		return errorf("the blob %s has more than its %d bytes", d.Digest, d.Size)
	}
	if size < d.Size {
		return errorf("the blob %s ends at byte %d of %d", d.Digest, size, d.Size)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != d.Digest.Hex {
		return errorf("the blob %s has the digest sha256:%s", d.Digest, got)
	}
	return nil
}
