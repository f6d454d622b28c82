package oci

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// MaxEntries is the maximum number of entries of an archive.
const MaxEntries = 1024

// archive has the files of a tar archive.
type archive struct {
	content io.ReaderAt
	entries map[string]*entry
}

// entry is a file of an archive.
type entry struct {
	name         string
	offset, size int64
}

// OpenTar reads the headers of a tar archive. Its files are read where they are; folders are ignored, and links and devices are errors.
func OpenTar(content io.ReaderAt, size int64) (fs.FS, error) {
	section := io.NewSectionReader(content, 0, size)
	reader := tar.NewReader(section)
	a := &archive{content, map[string]*entry{}}
	for count := 0; ; count++ {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return nil, errorf("the archive cannot be read: %v", err)
		}
		if count == MaxEntries {
			return nil, errorf("the archive has more than %d entries", MaxEntries)
		}
		name := path.Clean(header.Name)
		if header.Typeflag == tar.TypeDir {
			continue
		}
		if header.Typeflag != tar.TypeReg || sparse(header) {
			return nil, errorf("%.80q in the archive is no regular file", header.Name)
		}
		if !fs.ValidPath(name) {
			return nil, errorf("the archive has the name %.80q, which leads out of it", header.Name)
		}
		if a.entries[name] != nil {
			return nil, errorf("the archive has %.80q twice", name)
		}
		offset, err := section.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		if header.Size > size-offset {
			return nil, errorf("the archive is truncated: it ends at byte %d, and %.80q at byte %d", size, name, offset+header.Size)
		}
		a.entries[name] = &entry{name, offset, header.Size}
	}
}

// sparse reports whether the bytes in the archive are not those of the file.
func sparse(header *tar.Header) bool {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// Open implements fs.FS.
func (a *archive) Open(name string) (fs.File, error) {
	e := a.entries[name]
	if e == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &opened{e, io.NewSectionReader(a.content, e.offset, e.size)}, nil
}

type opened struct {
	*entry
	*io.SectionReader
}

func (o *opened) Stat() (fs.FileInfo, error) { return o.entry, nil }
func (o *opened) Close() error               { return nil }
func (o *opened) Size() int64                { return o.size }

func (e *entry) Name() string       { return path.Base(e.name) }
func (e *entry) Size() int64        { return e.size }
func (e *entry) Mode() fs.FileMode  { return 0o444 }
func (e *entry) ModTime() time.Time { return time.Time{} }
func (e *entry) IsDir() bool        { return false }
func (e *entry) Sys() any           { return nil }

// Index is the index of a layout with one artifact.
func (a *Artifact) Index(architecture string) ([]byte, error) {
	manifest := a.Descriptor
	manifest.Platform = &v1.Platform{Architecture: architecture, OS: "linux"}
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{manifest}}
	if a.Kind != "" {
		index.ArtifactType = a.Kind.ArtifactType()
	}
	return json.Marshal(index)
}

// WriteTar writes a layout as tar archive, in the order of KubeVirt's: what describes the layers comes before them. layer writes the content of one;
// another content than the artifact describes is an error.
func WriteTar(w io.Writer, a *Artifact, config []byte, architecture string, layer func(w io.Writer, disk Disk) error) error {
	index, err := a.Index(architecture)
	if err != nil {
		return fmt.Errorf("encoding the index: %w", err)
	}
	archive := tar.NewWriter(w)
	small := func(name string, content []byte) error {
		if err := header(archive, name, int64(len(content))); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	}
	for _, step := range []func() error{
		func() error { return small(LayoutFile, []byte(`{"imageLayoutVersion":"`+layoutVersion+`"}`)) },
		func() error { return small(indexFile, index) },
		func() error { return small(BlobName(a.Descriptor.Digest), a.Manifest) },
		func() error { return small(BlobName(a.Config.Digest), config) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("writing the archive: %w", err)
		}
	}
	written := map[v1.Hash]bool{}
	for _, disk := range a.Disks {
		// Equal disks are one blob.
		if written[disk.Layer.Digest] {
			continue
		}
		written[disk.Layer.Digest] = true
		if err := header(archive, BlobName(disk.Layer.Digest), disk.Layer.Size); err != nil {
			return fmt.Errorf("writing the archive: %w", err)
		}
		reader, writer := io.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			writer.CloseWithError(layer(writer, disk))
		}()
		_, err := io.Copy(archive, Verify(reader, disk.Layer))
		// It ends a writer whose bytes are not read.
		_ = reader.Close()
		<-done
		if err != nil {
			return fmt.Errorf("writing the disk %s: %w", disk.Name, err)
		}
	}
	return archive.Close()
}

func header(archive *tar.Writer, name string, size int64) error {
	return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644})
}
