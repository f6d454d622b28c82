package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/vmstencil/stencil/oci"
)

// Content writes a blob from a byte on.
type Content func(ctx context.Context, w io.Writer, offset int64) error

// Reopened is the content of a blob that is opened for each attempt. What is skipped is read, and with a verifying reader verified too.
func Reopened(open func(ctx context.Context) (io.ReadCloser, error)) Content {
	return func(ctx context.Context, w io.Writer, offset int64) error {
		blob, err := open(ctx)
		if err != nil {
			return err
		}
		if _, err = io.CopyN(io.Discard, blob, offset); err == nil {
			_, err = io.Copy(w, blob)
		}
		return errors.Join(err, blob.Close())
	}
}

// Upload writes a blob, unless the repository has it. An upload that is cut, also one of an earlier command, continues with the bytes that the registry has
// not received. progress receives the number of bytes that were sent.
func (r *Repository) Upload(ctx context.Context, d v1.Descriptor, content Content, progress func(done int64)) error {
	if err := r.connect(ctx, transport.PushScope); err != nil {
		return err
	}
	stored, to, digest := sessions(r.options.Uploads), r.address(""), d.Digest.String()
	u := &upload{repository: r, of: d, content: content, progress: progress, location: stored.take(to, digest)}
	u.begun = func() { stored.store(to, digest, u.location) }
	err := r.persist(ctx, func() (int64, error) {
		before := u.offset
		err := u.run(ctx)
		return u.offset - before, err
	})
	// A registry that rejects what the session has would do so again.
	var rejected *transport.Error
	if err == nil || errors.As(err, &rejected) && !temporary(err) {
		stored.remove(to, digest)
	}
	return err
}

// upload is a blob that is being sent.
type upload struct {
	repository *Repository
	of         v1.Descriptor
	content    Content
	progress   func(done int64)
	// location is the address of the session, empty if there is none; offset is the number of bytes that it has.
	location string
	offset   int64
	// begun is called when a session begins or continues.
	begun func()
}

// run sends what the registry does not have.
func (u *upload) run(ctx context.Context) error {
	if u.location != "" {
		u.resume(ctx)
	}
	if u.location == "" {
		exists, err := u.exists(ctx)
		if exists || err != nil {
			return err
		}
		started, err := u.do(ctx, http.MethodPost, u.repository.address("/blobs/uploads/"), nil, nil, http.StatusAccepted)
		if err != nil {
			return err
		}
		if u.location, err = started.location(); err != nil {
			return err
		}
		u.offset = 0
	}
	u.begun()
	if u.offset < u.of.Size {
		if err := u.send(ctx); err != nil {
			return err
		}
	}
	commit, err := url.Parse(u.location)
	if err != nil {
		return err
	}
	query := commit.Query()
	query.Set("digest", u.of.Digest.String())
	commit.RawQuery = query.Encode()
	_, err = u.do(ctx, http.MethodPut, commit.String(), nil, nil, http.StatusCreated)
	var rejected *transport.Error
	if errors.As(err, &rejected) && rejected.StatusCode == http.StatusBadRequest {
		return fmt.Errorf("the registry rejects blob %s: %w", u.of.Digest, err)
	}
	return err
}

// exists reports whether the repository has the blob.
func (u *upload) exists(ctx context.Context) (bool, error) {
	has, err := u.do(ctx, http.MethodHead, u.repository.address("/blobs/"+u.of.Digest.String()), nil, nil, http.StatusOK, http.StatusNotFound)
	if err != nil || has.code != http.StatusOK {
		return false, err
	}
	u.offset = u.of.Size
	u.progress(u.of.Size)
	return true, nil
}

// resume requests what the session has. Registries that do not report it, or have ended the session, get another one.
func (u *upload) resume(ctx context.Context) {
	status, err := u.do(ctx, http.MethodGet, u.location, nil, nil, http.StatusNoContent)
	if err == nil {
		var first, last int64
		// 0-0 is also that of a session without bytes.
		if _, err = fmt.Sscanf(status.header.Get("Range"), "%d-%d", &first, &last); err == nil && first == 0 && 0 < last && last < u.of.Size {
			u.offset = last + 1
			if status.header.Get("Location") != "" {
				u.location, err = status.location()
			}
			if err == nil {
				return
			}
		}
	}
	u.location, u.offset = "", 0
}

// send sends the bytes of the blob from the offset on.
func (u *upload) send(ctx context.Context) error {
	begin := u.offset
	reader, writer := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := u.content(ctx, writer, begin)
		writer.CloseWithError(err)
		done <- err
	}()
	header := http.Header{"Content-Type": {"application/octet-stream"}}
	if begin > 0 {
		header.Set("Content-Range", fmt.Sprintf("%d-%d", begin, u.of.Size-1))
	}
	sent, err := u.do(ctx, http.MethodPatch, u.location, &body{Reader: reader, size: u.of.Size - begin, sent: func(n int64) { u.progress(begin + n) }}, header, http.StatusAccepted, http.StatusNoContent, http.StatusCreated)
	// It ends a writer whose bytes are not read.
	_ = reader.Close()
	if failed := <-done; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		return &permanentError{failed}
	}
	var rejected *transport.Error
	if errors.As(err, &rejected) {
		// What the session has is not known.
		u.location = ""
	}
	if err != nil {
		return err
	}
	u.offset = u.of.Size
	u.location, err = sent.location()
	return err
}

// body counts what is sent.
type body struct {
	io.Reader
	size, count int64
	sent        func(n int64)
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.count += int64(n)
	b.sent(b.count)
	return n, err
}

// answer is what a registry answers to a request of an upload.
type answer struct {
	code   int
	header http.Header
	// from is the address that answered.
	from *url.URL
}

// do sends a request. Other codes than the given ones are errors.
func (u *upload) do(ctx context.Context, method, address string, content *body, header http.Header, codes ...int) (*answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	if header != nil {
		request.Header = header
	}
	if content != nil {
		request.Body, request.ContentLength = io.NopCloser(content), content.size
	}
	response, err := u.repository.client.Do(request)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(transport.CheckError(response, codes...), response.Body.Close()); err != nil {
		return nil, err
	}
	return &answer{response.StatusCode, response.Header, response.Request.URL}, nil
}

// location returns the address of a session. Registries may name another host.
func (a *answer) location() (string, error) {
	at, err := a.from.Parse(a.header.Get("Location"))
	if err != nil || a.header.Get("Location") == "" {
		return "", fmt.Errorf("the registry answers with the address %q of an upload", a.header.Get("Location"))
	}
	if err := external(a.from, at); err != nil {
		return "", err
	}
	return at.String(), nil
}

// Tag writes the manifest. The artifact's blobs have to be present.
func (r *Repository) Tag(ctx context.Context, a *oci.Artifact) error {
	if err := r.Accepts(a); err != nil {
		return err
	}
	if err := remote.Put(r.reference, tagged(a.Manifest), r.remote(ctx)...); err != nil {
		return fmt.Errorf("writing the manifest of %s: %w", r, err)
	}
	return nil
}

// Accepts returns an error if the reference has the digest of another artifact.
func (r *Repository) Accepts(a *oci.Artifact) error {
	if digest, is := r.reference.(name.Digest); is && digest.DigestStr() != a.Descriptor.Digest.String() {
		return fmt.Errorf("%s: the artifact has the digest %s", r, a.Descriptor.Digest)
	}
	return nil
}

// tagged is a manifest for the library.
type tagged []byte

// RawManifest implements remote.Taggable.
func (t tagged) RawManifest() ([]byte, error) { return t, nil }

// MediaType is the type with which the manifest is stored.
func (t tagged) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
