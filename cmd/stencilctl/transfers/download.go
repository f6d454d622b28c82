package transfers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"regexp"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
)

var digests = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// download writes the package of an export to the file. It continues what an earlier command has written, and after a lost connection.
func (c *exporting) download(ctx context.Context, client *cluster.Client, export *v1beta1.VirtualMachineTemplateExport) (err error) {
	status := export.Status
	if status.TokenSecretRef == nil || !digests.MatchString(status.Digest) {
		return cli.Cluster(fmt.Errorf("the export %s has no package", export.Name))
	}
	from, err := c.endpoint(ctx, client, export.Namespace, status.URL, status.ExternalURL, status.TokenSecretRef.Name, nil)
	if err != nil {
		return err
	}
	partial := c.partial(status.Digest)
	file, err := os.OpenFile(partial, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return cli.Usage(err)
	}
	defer func() { err = errors.Join(err, cli.Internal(file.Close())) }()
	lock, err := files.NewLock(partial + ".lock")
	if err != nil {
		return cli.Internal(fmt.Errorf("%s: %w", partial, err))
	}
	defer func() { err = errors.Join(err, cli.Internal(lock.Release())) }()

	sum := sha256.New()
	written, err := io.Copy(sum, files.Interruptible(ctx, file))
	if err != nil {
		return cli.Internal(err)
	}
	meter := files.NewMeter(c.streams, "download", status.Size)
	defer meter.End()
	get := func(offset int64) (io.ReadCloser, error) { return from.Get(ctx, offset) }
	if err := c.fetch(ctx, get, &sink{file: file, sum: sum, written: written, size: status.Size, meter: meter}); err != nil {
		return err
	}
	meter.End()
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != status.Digest {
		return errors.Join(cli.Cluster(fmt.Errorf("the package that was downloaded has the digest %s, and %s in the status of the export: it is not kept", got, status.Digest)), cli.Internal(os.Remove(partial)))
	}
	return cli.Internal(c.finish(partial))
}

// sink is the file of a download.
type sink struct {
	file          *os.File
	sum           hash.Hash
	written, size int64
	meter         *files.Meter
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	s.sum.Write(p[:n])
	s.written += int64(n)
	s.meter.To(s.written)
	if err != nil {
		return n, cli.Internal(err)
	}
	return n, nil
}

// fetch gets what is missing.
func (c *exporting) fetch(ctx context.Context, get func(offset int64) (io.ReadCloser, error), to *sink) error {
	return c.repeat(ctx, "downloading the package", func() int64 { return to.size - to.written }, func() error { return receive(get, to) })
}

// repeat makes attempts until nothing is left. It makes another one while there is progress, and for some time without.
func (r retrying) repeat(ctx context.Context, doing string, left func() int64, attempt func() error) error {
	for last := time.Now(); left() > 0; {
		before := left()
		err := attempt()
		if left() < before {
			last = time.Now()
		}
		switch {
		case left() <= 0:
			return nil
		case ctx.Err() != nil:
			return cli.Internal(fmt.Errorf("%s: %w", doing, ctx.Err()))
		case err == nil:
			continue
		case cli.ExitCode(err) == cli.ExitInternal || lasting(err), time.Since(last) >= r.tolerate:
			return cluster.Failed(doing, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(r.pause):
		}
	}
	return nil
}

// receive makes one request, and writes its response.
func receive(get func(offset int64) (io.ReadCloser, error), to *sink) error {
	body, err := get(to.written)
	if err != nil {
		return err
	}
	defer body.Close()
	if _, err := io.Copy(to, io.LimitReader(body, to.size-to.written)); err != nil {
		return err
	}
	if to.written < to.size {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// lasting reports whether a request fails in the same way if it is made again.
func lasting(err error) bool {
	for _, is := range []func(error) bool{
		apierrors.IsForbidden, apierrors.IsUnauthorized, apierrors.IsNotFound, apierrors.IsGone, apierrors.IsBadRequest,
	} {
		if is(err) {
			return true
		}
	}
	return false
}
