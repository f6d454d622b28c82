package mover

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"sort"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/ova"
	"github.com/vmstencil/stencil/transfer"
)

// maxFolderFiles bounds the files of a package in a folder, each of which has a connection.
const maxFolderFiles = 256

// isDescriptor reports whether a source is the descriptor of a package in a folder.
func isDescriptor(name string) bool { return strings.EqualFold(path.Ext(name), ".ovf") }

// folder is a package whose files are beside its descriptor. It reads as the OVA that consists of them.
type folder struct {
	files    []origin
	segments []segment
	size     int64
}

// segment is a part of the OVA.
type segment struct {
	offset, size int64
	name         string
	// from is nil for content.
	from    origin
	content []byte
}

// openFolder opens the files of a package. open opens one of a name, beside the descriptor.
func (m *Mover) openFolder(ctx context.Context, descriptor string, open func(name string) (origin, error)) (o origin, err error) {
	if m.Task.Checksum != "" {
		return nil, failed(transfer.ReasonUnsupported, false, "a package in a folder has no digest of its own: remove the checksum, and use verification Require, which compares each file with the manifest")
	}
	f := &folder{}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	add := func(name string) error {
		from, err := open(name)
		if err != nil {
			return err
		}
		f.files = append(f.files, from)
		if from.Size() < 0 {
			return failed(transfer.ReasonUnsupported, false, "the server does not report the size of %.200q", name)
		}
		return f.add(name, from)
	}
	if err := add(descriptor); err != nil {
		return nil, err
	}
	text, err := readDescriptor(ctx, f.files[0])
	if err != nil {
		return nil, err
	}
	names, err := ova.FolderFiles(descriptor, text)
	if err != nil {
		return nil, err
	}
	if len(names) > maxFolderFiles {
		return nil, failed(transfer.ReasonLimitExceeded, false, "the package has %d files, and at most %d are allowed in a folder: make an OVA of it", len(names), maxFolderFiles)
	}
	manifest := strings.TrimSuffix(descriptor, path.Ext(descriptor)) + ".mf"
	if m.Task.Verification != v1beta1.ImportVerificationSkip {
		if err := add(manifest); err != nil && !isAbsent(err) {
			return nil, err
		}
	}
	for _, name := range names {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	// Two blocks of zeros end an archive.
	f.append(segment{content: make([]byte, 2*tarBlock)})
	return f, nil
}

// isAbsent reports whether there is no file. Buckets that cannot be listed deny access to an object that does not exist.
func isAbsent(err error) bool {
	var known *transfer.Failure
	return errors.As(err, &known) && !known.Retry && (known.Reason == transfer.ReasonUnreachableSource || known.Reason == transfer.ReasonSourceDenied)
}

func readDescriptor(ctx context.Context, from origin) ([]byte, error) {
	if from.Size() > ovf.MaxDescriptorBytes {
		return nil, failed(transfer.ReasonNotAPackage, false, "the descriptor has %d bytes, and at most %d are allowed", from.Size(), ovf.MaxDescriptorBytes)
	}
	stream := from.Stream(ctx)
	defer stream.Close()
	return io.ReadAll(io.LimitReader(stream, ovf.MaxDescriptorBytes))
}

// add appends a file with its header and what fills its last block.
func (f *folder) add(name string, from origin) error {
	header, err := ova.Header(name, from.Size())
	if err != nil {
		return err
	}
	f.append(segment{content: header})
	f.append(segment{name: name, from: from, size: from.Size()})
	f.append(segment{content: make([]byte, (tarBlock-from.Size()%tarBlock)%tarBlock)})
	return nil
}

func (f *folder) append(s segment) {
	if s.from == nil {
		s.size = int64(len(s.content))
	}
	if s.size == 0 {
		return
	}
	s.offset = f.size
	f.size += s.size
	f.segments = append(f.segments, s)
}

func (f *folder) Size() int64 { return f.size }

// Revision of all files, and empty if one has none.
func (f *folder) Revision() string {
	var all []string
	for _, s := range f.segments {
		if s.from == nil {
			continue
		}
		revision := s.from.Revision()
		if revision == "" {
			return ""
		}
		all = append(all, s.name+" "+revision+"\n")
	}
	return digestOf([]byte(strings.Join(all, "")))
}

func (f *folder) Close() (err error) {
	for _, each := range f.files {
		err = errors.Join(err, each.Close())
	}
	return err
}

// Stream reads the files one after another.
func (f *folder) Stream(ctx context.Context) io.ReadCloser {
	return &folderStream{ctx: ctx, segments: f.segments}
}

type folderStream struct {
	ctx      context.Context
	segments []segment
	// current is the reader of the first segment; left bytes remain of it. It is nil before the segment is opened.
	current io.ReadCloser
	left    int64
}

func (s *folderStream) Read(p []byte) (int, error) {
	if len(s.segments) == 0 {
		return 0, io.EOF
	}
	at := s.segments[0]
	if s.current == nil {
		s.left = at.size
		if s.current = io.NopCloser(bytes.NewReader(at.content)); at.from != nil {
			s.current = at.from.Stream(s.ctx)
		}
	}
	n, err := s.current.Read(p[:min(int64(len(p)), s.left)])
	if s.left -= int64(n); s.left == 0 {
		err = s.Close()
		s.segments = s.segments[1:]
	} else if errors.Is(err, io.EOF) {
		err = failed(transfer.ReasonSourceChanged, false, "the file %.200q has changed while it was read; start again", at.name)
	}
	return n, err
}

// Close closes the file that is being read.
func (s *folderStream) Close() error {
	if s.current == nil {
		return nil
	}
	err := s.current.Close()
	s.current = nil
	return err
}

// random reads files by ranges, if all servers support them.
func (f *folder) random(ctx context.Context) io.ReaderAt {
	r := &folderRanges{folder: f}
	for _, s := range f.segments {
		var at io.ReaderAt = bytes.NewReader(s.content)
		if s.from != nil {
			if at = s.from.random(ctx); at == nil {
				return nil
			}
		}
		r.readers = append(r.readers, at)
	}
	return r
}

type folderRanges struct {
	*folder
	// readers of the segments.
	readers []io.ReaderAt
}

// ReadAt implements io.ReaderAt.
func (r *folderRanges) ReadAt(p []byte, offset int64) (done int, err error) {
	if offset < 0 {
		return 0, errors.New("negative offset")
	}
	number := sort.Search(len(r.segments), func(i int) bool { return r.segments[i].offset+r.segments[i].size > offset })
	for done < len(p) {
		if number == len(r.segments) {
			return done, io.EOF
		}
		s := r.segments[number]
		begin := offset + int64(done) - s.offset
		part := p[done:min(int64(len(p)), int64(done)+s.size-begin)]
		n, err := r.readers[number].ReadAt(part, begin)
		if done += n; n < len(part) {
			return done, err
		}
		number++
	}
	return done, nil
}
