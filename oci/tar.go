package oci

import (
	"archive/tar"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
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
	archive := tar.NewWriter(w)
	if err := writeHead(archive, a, config, architecture); err != nil {
		return err
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

// File is what CreateTar writes to, such as *os.File.
type File interface {
	io.WriteSeeker
	Truncate(size int64) error
}

// CreateTar writes the archive that WriteTar writes, of an artifact as Encode makes it, in one pass over the disks: layer writes disk i, and returns the
// size and the digest of the layer, which need not be known before. What precedes the layers is written after them. w is empty.
func CreateTar(w File, kind Kind, config []byte, architecture string, disks []Disk, layer func(w io.Writer, i int) (v1.Descriptor, error)) (*Artifact, error) {
	disks = slices.Clone(disks)
	for i := range disks {
		// It is as long as any other.
		disks[i].Layer = Describe(DiskType, []byte{0})
	}
	a, err := Encode(kind, config, disks)
	if err != nil {
		return nil, err
	}
	var head bytes.Buffer
	archive := tar.NewWriter(&head)
	if err := errors.Join(writeHead(archive, a, config, architecture), archive.Flush()); err != nil {
		return nil, err
	}
	end := int64(head.Len())
	written := map[v1.Hash]bool{}
	for i := range disks {
		after, err := placeLayer(w, end, &disks[i], func(w io.Writer) (v1.Descriptor, error) { return layer(w, i) })
		if err != nil {
			return nil, fmt.Errorf("writing the disk %s: %w", disks[i].Name, err)
		}
		// The next member replaces one that there is already.
		if !written[disks[i].Layer.Digest] {
			written[disks[i].Layer.Digest] = true
			end = after
		}
	}
	if a, err = Encode(kind, config, disks); err != nil {
		return nil, err
	}
	if _, err := w.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("writing the archive: %w", err)
	}
	archive = tar.NewWriter(w)
	if err := errors.Join(writeHead(archive, a, config, architecture), archive.Flush(), w.Truncate(end)); err != nil {
		return nil, err
	}
	if _, err := w.Seek(end, io.SeekStart); err != nil {
		return nil, fmt.Errorf("writing the archive: %w", err)
	}
	return a, tar.NewWriter(w).Close()
}

// placeLayer writes a layer at an offset, behind the room for its header, and then the header. It returns the end of the member.
func placeLayer(w io.WriteSeeker, offset int64, disk *Disk, content func(w io.Writer) (v1.Descriptor, error)) (end int64, err error) {
	start := offset + tarBlock
	if _, err := w.Seek(start, io.SeekStart); err != nil {
		return 0, err
	}
	buffered := bufio.NewWriterSize(w, 1<<20)
	if disk.Layer, err = content(buffered); err != nil {
		return 0, err
	}
	if err := buffered.Flush(); err != nil {
		return 0, err
	}
	last, err := w.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	if last-start != disk.Layer.Size {
		return 0, fmt.Errorf("%d bytes were written of a layer of %d", last-start, disk.Layer.Size)
	}
	// The content ends with a block.
	end = start + (disk.Layer.Size+tarBlock-1)/tarBlock*tarBlock
	if _, err := w.Write(make([]byte, end-last)); err != nil {
		return 0, err
	}
	if _, err := w.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	return end, header(tar.NewWriter(w), BlobName(disk.Layer.Digest), disk.Layer.Size)
}

// writeHead writes the members that describe the layers.
func writeHead(archive *tar.Writer, a *Artifact, config []byte, architecture string) error {
	index, err := a.Index(architecture)
	if err != nil {
		return fmt.Errorf("encoding the index: %w", err)
	}
	for _, small := range []struct {
		name    string
		content []byte
	}{
		{LayoutFile, []byte(`{"imageLayoutVersion":"` + layoutVersion + `"}`)},
		{indexFile, index},
		{BlobName(a.Descriptor.Digest), a.Manifest},
		{BlobName(a.Config.Digest), config},
	} {
		if err := header(archive, small.name, int64(len(small.content))); err != nil {
			return fmt.Errorf("writing the archive: %w", err)
		}
		if _, err := archive.Write(small.content); err != nil {
			return fmt.Errorf("writing the archive: %w", err)
		}
	}
	return nil
}

// tarBlock is the size in bytes of a header, and what contents are filled up to.
const tarBlock = 512

// header writes the header of a member. It is one block: of ustar, and GNU's for more than 8 GiB.
func header(archive *tar.Writer, name string, size int64) error {
	format := tar.FormatUSTAR
	if size > 1<<33-1 {
		format = tar.FormatGNU
	}
	return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, Format: format})
}
