package registry

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/vmstencil/stencil/internal/resume"
	"github.com/vmstencil/stencil/oci"
)

// get requests a blob from a byte on. The body begins at the returned byte, which is 0 if the registry does not support ranges.
func (r *Repository) get(ctx context.Context, d v1.Descriptor, offset int64) (body io.ReadCloser, begin int64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.address("/blobs/"+d.Digest.String()), nil)
	if err != nil {
		return nil, 0, err
	}
	if offset > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, d.Size-1))
	}
	response, err := r.client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	if err := transport.CheckError(response, http.StatusOK, http.StatusPartialContent); err != nil {
		return nil, 0, errors.Join(err, response.Body.Close())
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, 0, nil
	}
	var first, last int64
	if _, err := fmt.Sscanf(response.Header.Get("Content-Range"), "bytes %d-%d/", &first, &last); err != nil || first != offset {
		return nil, 0, errors.Join(fmt.Errorf("the registry answers with the range %q to a request from byte %d", response.Header.Get("Content-Range"), offset), response.Body.Close())
	}
	return response.Body, offset, nil
}

// Stream returns a reader of a blob, which ends with an oci.Error if the content is not that of the descriptor. A connection that is cut, or over which nothing
// is sent for the time stall, is continued.
func (r *Repository) Stream(ctx context.Context, d v1.Descriptor, stall time.Duration) (io.ReadCloser, error) {
	if err := r.connect(ctx, transport.PullScope); err != nil {
		return nil, err
	}
	reader := resume.NewReader(ctx, resume.Content{
		Open: func(ctx context.Context, offset int64) (io.ReadCloser, int64, error) { return r.get(ctx, d, offset) },
		Size: d.Size, Stall: stall, Pace: r.options.Pace, Temporary: temporary, Wait: r.options.Wait,
	})
	return &verified{oci.Verify(reader, d), reader}, nil
}

type verified struct {
	io.Reader
	io.Closer
}

// Download writes a blob to a file, and verifies it. A file that has the beginning of the blob is continued. If the digest differs, the file is emptied, and
// the error is an oci.Error. progress receives the number of bytes that the file has.
func (r *Repository) Download(ctx context.Context, d v1.Descriptor, file *os.File, progress func(done int64)) error {
	if err := r.connect(ctx, transport.PullScope); err != nil {
		return err
	}
	to := download{of: d, file: file, sum: sha256.New(), progress: progress}
	if err := to.resume(); err != nil {
		return err
	}
	resumed := to.size
	err := to.run(ctx, r)
	var malformed *oci.Error
	if errors.As(err, &malformed) && resumed > 0 {
		// What an earlier run left may be damaged.
		if err := to.reset(); err != nil {
			return err
		}
		err = to.run(ctx, r)
	}
	if errors.As(err, &malformed) {
		return errors.Join(err, to.reset())
	}
	return err
}

// download is a blob that is being written to a file.
type download struct {
	of       v1.Descriptor
	file     *os.File
	sum      hash.Hash
	size     int64
	progress func(done int64)
}

func (d *download) reset() error {
	d.size = 0
	d.sum.Reset()
	if _, err := d.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return d.file.Truncate(0)
}

// resume computes the digest of what the file has.
func (d *download) resume() error {
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > d.of.Size {
		return d.reset()
	}
	if _, err := d.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	d.size, err = io.Copy(d.sum, d.file)
	return err
}

func (d *download) run(ctx context.Context, r *Repository) error {
	err := r.persist(ctx, func() (int64, error) {
		before := d.size
		err := d.continueFrom(ctx, r)
		return d.size - before, err
	})
	if err != nil {
		return err
	}
	// It compares the digest of what was written.
	return oci.Compare(d.of, d.size, d.sum)
}

// errShort means that an answer ended before the blob.
var errShort = errors.New("the connection ended before the blob")

func (d *download) continueFrom(ctx context.Context, r *Repository) error {
	d.progress(d.size)
	if d.size == d.of.Size {
		return nil
	}
	body, begin, err := r.get(ctx, d.of, d.size)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	if begin < d.size {
		if _, err := io.CopyN(io.Discard, body, d.size); err != nil {
			return err
		}
	}
	// A byte more than the blob has is one too many.
	if _, err = io.Copy(d, io.LimitReader(body, d.of.Size-d.size+1)); err != nil {
		return err
	}
	if d.size < d.of.Size {
		return errShort
	}
	return nil
}

// Write implements io.Writer.
func (d *download) Write(p []byte) (int, error) {
	n, err := d.file.Write(p)
	d.sum.Write(p[:n])
	d.size += int64(n)
	d.progress(d.size)
	return n, err
}
