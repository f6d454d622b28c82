package oci

import (
	"archive/tar"
	"bytes"
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

// maxKeptBytes bounds the files of a stream that are kept in memory: index, manifest and config.
const maxKeptBytes = 4 * MaxManifestBytes

// archive has the files of a tar archive, by name.
type archive map[string]*entry

// entry is a file of an archive.
type entry struct {
	name         string
	from         io.ReaderAt
	offset, size int64
}

// OpenTar reads the headers of a tar archive. Its files are read where they are; folders are ignored, and links and devices are errors.
func OpenTar(content io.ReaderAt, size int64) (fs.FS, error) {
	section := io.NewSectionReader(content, 0, size)
	stream := NewTarStream(section)
	for {
		next, err := stream.next()
		if errors.Is(err, io.EOF) {
			return stream.Files(), nil
		}
		if err != nil {
			return nil, err
		}
		offset, err := section.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		if next.size > size-offset {
			return nil, errorf("the archive is truncated: it ends at byte %d, and %.80q at byte %d", size, next.name, offset+next.size)
		}
		next.from, next.offset = content, offset
	}
}

// TarStream reads a tar archive once, in the order of its files.
type TarStream struct {
	from  *tar.Reader
	files archive
	// current is the file that Read reads.
	current *entry
	kept    int64
	count   int
}

// NewTarStream returns a stream at the beginning of an archive.
func NewTarStream(from io.Reader) *TarStream {
	return &TarStream{from: tar.NewReader(from), files: archive{}}
}

// Next goes to the next file, and returns io.EOF behind the last one. Folders are ignored, and links and devices are errors.
func (s *TarStream) Next() (fs.FileInfo, error) { return s.next() }

func (s *TarStream) next() (*entry, error) {
	for {
		header, err := s.from.Next()
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		if err != nil {
			return nil, &Error{fmt.Sprintf("the archive cannot be read: %v", err), err}
		}
		if s.count++; s.count > MaxEntries {
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
		if s.files[name] != nil {
			return nil, errorf("the archive has %.80q twice", name)
		}
		s.current = &entry{name: name, from: passed{}, size: header.Size}
		s.files[name] = s.current
		return s.current, nil
	}
}

// Name is the path of the current file.
func (s *TarStream) Name() string { return s.current.name }

// Read reads the current file.
func (s *TarStream) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &Error{fmt.Sprintf("the archive cannot be read: %v", err), err}
	}
	return n, err
}

// Keep reads the current file into memory. Files with more than maxKeptBytes together are an error.
func (s *TarStream) Keep() error {
	if s.kept += s.current.size; s.current.size > maxKeptBytes || s.kept > maxKeptBytes {
		return errorf("%.80q and the small files before it have more than %d bytes", s.current.name, maxKeptBytes)
	}
	content, err := io.ReadAll(s)
	s.current.from = bytes.NewReader(content)
	return err
}

// Files are those that have passed: the kept ones with their content, others with their size only.
func (s *TarStream) Files() fs.FS { return s.files }

// passed is the content of a file that was not kept.
type passed struct{}

func (passed) ReadAt([]byte, int64) (int, error) {
	return 0, errors.New("the file of the stream was not kept")
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
func (a archive) Open(name string) (fs.File, error) {
	e := a[name]
	if e == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &opened{e, io.NewSectionReader(e.from, e.offset, e.size)}, nil
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
