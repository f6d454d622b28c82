package mover

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"path"
	"time"

	"github.com/vmstencil/stencil/internal/mover/web"
	"github.com/vmstencil/stencil/internal/resume"
	"github.com/vmstencil/stencil/internal/s3"
	"github.com/vmstencil/stencil/transfer"
)

// origin is a file with a package.
type origin interface {
	// Size is -1 if it is not known.
	Size() int64
	Revision() string
	// Stream returns a reader of the whole file.
	Stream(ctx context.Context) io.ReadCloser
	// random returns a reader by random access, and nil if there is none.
	random(ctx context.Context) io.ReaderAt
	Close() error
}

// stall is how long a source may send nothing.
func (m *Mover) stall() time.Duration { return time.Duration(m.Task.Limits.StallSeconds) * time.Second }

// pace is how slowly a source may send, over twice the time in which it may send nothing.
func (m *Mover) pace() resume.Pace {
	return resume.Pace{Slowest: m.Task.Limits.BytesPerSecond, Window: 2 * m.stall()}
}

// open opens the package of a source: a file, or those of a folder whose descriptor the source names.
func (m *Mover) open(ctx context.Context) (origin, error) {
	whole, open, err := m.files(ctx)
	if err != nil {
		return nil, err
	}
	if folder, name := path.Split(whole); isDescriptor(name) {
		return m.openFolder(ctx, name, func(name string) (origin, error) { return open(folder + name) })
	}
	return open(whole)
}

// files returns the path of a source, and what opens a file of its volume or its server.
func (m *Mover) files(ctx context.Context) (whole string, open func(name string) (origin, error), err error) {
	networks, err := m.networks()
	if err != nil {
		return "", nil, err
	}
	with, err := m.Folders.credentials()
	if err != nil {
		return "", nil, err
	}
	options := web.Options{Authorities: with.authorities, Networks: networks, Stall: m.stall(), Pace: m.pace(), Wait: m.Wait}
	var address string
	switch source := m.Task.Source; {
	case source.PVC != nil:
		return source.PVC.Path, func(name string) (origin, error) { return m.openLocal(transfer.SourceFolder, name) }, nil
	case source.HTTP != nil:
		address, options.Username, options.Password, options.Token = source.HTTP.URL, with.username, with.password, with.token
	case source.S3 != nil:
		if with.accessKey == "" || with.secretKey == "" {
			return "", nil, failed(transfer.ReasonSourceDenied, false, "the Secret of the source must have the keys %s and %s", s3.AccessKey, s3.SecretKey)
		}
		address = source.S3.URL
	default:
		return "", nil, failed(transfer.ReasonInvalidTask, false, "the task has no source")
	}
	at, err := url.Parse(address)
	if err != nil {
		return "", nil, failed(transfer.ReasonInvalidTask, false, "the URL of the source is none of http or https")
	}
	return at.Path, func(name string) (origin, error) {
		options := options
		if options.URL = address; name != at.Path {
			// The query may have a token for all files.
			other := *at
			other.Path, other.RawPath = name, ""
			options.URL = other.String()
		}
		if source := m.Task.Source.S3; source != nil {
			object, err := s3.Open(options.URL, source.Region, with.accessKey, with.secretKey)
			if err != nil {
				return nil, failed(transfer.ReasonInvalidTask, false, "the URL of the source: %v", err)
			}
			options.Object, options.URL = object, object.URL()
		}
		file, err := web.Open(ctx, options)
		if err != nil {
			return nil, err
		}
		return &served{file}, nil
	}, nil
}

// served is a file of a server.
type served struct{ *web.File }

func (r *served) random(ctx context.Context) io.ReaderAt {
	if !r.Ranges() {
		return nil
	}
	return r.ReaderAt(ctx)
}

// local is a file of a PersistentVolumeClaim.
type local struct {
	*os.File
	size int64
}

// openLocal opens a file of a volume. Neither a path nor a symbolic link leads out of it.
func (m *Mover) openLocal(volume, path string) (origin, error) {
	root, err := os.OpenRoot(m.Folders.path(volume))
	if err != nil {
		return nil, failed(transfer.ReasonInvalidTask, false, "the volume with the package is not mounted")
	}
	defer root.Close()
	info, err := root.Stat(path)
	if err != nil {
		return nil, failed(transfer.ReasonUnreachableSource, false, "the volume has no file %.200q: %v", path, cause(err))
	}
	if !info.Mode().IsRegular() {
		return nil, failed(transfer.ReasonNotAPackage, false, "%.200q in the volume is no regular file", path)
	}
	file, err := root.Open(path)
	if err != nil {
		return nil, failed(transfer.ReasonUnreachableSource, false, "the file %.200q of the volume cannot be opened: %v", path, cause(err))
	}
	return &local{file, info.Size()}, nil
}

// cause is the part of an error without the path.
func cause(err error) error {
	if inner := (*os.PathError)(nil); errors.As(err, &inner) {
		return inner.Err
	}
	return err
}

func (l *local) Size() int64      { return l.size }
func (l *local) Revision() string { return "" }

func (l *local) Stream(ctx context.Context) io.ReadCloser {
	return io.NopCloser(&interruptible{ctx, io.NewSectionReader(l.File, 0, l.size)})
}

func (l *local) random(context.Context) io.ReaderAt { return io.NewSectionReader(l.File, 0, l.size) }

// interruptible is a reader that ends with a context.
type interruptible struct {
	ctx  context.Context
	from io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		return 0, context.Cause(i.ctx)
	}
	return i.from.Read(p)
}
