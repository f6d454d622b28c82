package mover

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/vmstencil/stencil/internal/mover/web"
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

// open opens the file of a source.
func (m *Mover) open(ctx context.Context) (origin, error) {
	allowed, err := m.networks()
	if err != nil {
		return nil, err
	}
	with, err := m.Folders.credentials()
	if err != nil {
		return nil, err
	}
	options := web.Options{Authorities: with.authorities, Allowed: allowed, Stall: m.stall(), Wait: m.Wait}
	switch source := m.Task.Source; {
	case source.PVC != nil:
		return m.openLocal(transfer.SourceFolder, source.PVC.Path)
	case source.HTTP != nil:
		options.URL, options.Username, options.Password, options.Token = source.HTTP.URL, with.username, with.password, with.token
	case source.S3 != nil:
		if with.accessKey == "" || with.secretKey == "" {
			return nil, failed(transfer.ReasonSourceDenied, false, "the Secret of the source must have the keys %s and %s", s3.AccessKey, s3.SecretKey)
		}
		if options.Object, err = s3.Open(source.S3.URL, source.S3.Region, with.accessKey, with.secretKey); err != nil {
			return nil, failed(transfer.ReasonInvalidTask, false, "the URL of the source: %v", err)
		}
		options.URL = options.Object.URL()
	default:
		return nil, failed(transfer.ReasonInvalidTask, false, "the task has no source")
	}
	file, err := web.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	return &served{file}, nil
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
