package mover

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/vmstencil/stencil/internal/outbound"
	"github.com/vmstencil/stencil/internal/registry"
	"github.com/vmstencil/stencil/transfer"
)

// storing is how long a registry may take to store what was uploaded.
const storing = 10 * time.Minute

// push writes the package of the result volume to the registry of the target, layers that the registry has excepted.
func (m *Mover) push(ctx context.Context) error {
	target := m.Task.Package.Target
	repository, closeIt, err := m.repository("target", target.Image, target.Insecure, storing)
	if err != nil {
		return err
	}
	defer closeIt()
	file, err := m.openLocal(transfer.ResultFolder, m.Task.Package.File)
	if err != nil {
		return err
	}
	defer file.Close()
	made, err := layout(ctx, file)
	if err != nil {
		return err
	}
	for _, blob := range made.Blobs() {
		content := registry.Reopened(func(ctx context.Context) (io.ReadCloser, error) {
			content, err := made.layer(ctx, blob)
			return readCloser{&interruptible{ctx, content}, content}, err
		})
		err := repository.Upload(ctx, blob, content, func(int64) {})
		if err != nil {
			return m.unsent(err)
		}
	}
	if err := repository.Tag(ctx, made.Artifact); err != nil {
		return m.unsent(err)
	}
	m.report.change(func(s *transfer.State) { s.Image = repository.Pinned(made.Descriptor.Digest.String()) })
	return nil
}

// readCloser is a reader with the closer of another.
type readCloser struct {
	io.Reader
	io.Closer
}

// unsent makes an error of a registry one of the target.
func (m *Mover) unsent(err error) error {
	var answer *transport.Error
	switch {
	case errors.Is(err, outbound.ErrPrivate):
		return failed(transfer.ReasonTargetDenied, false, "%v", err)
	case errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		return failed(transfer.ReasonTargetDenied, false, "the registry answers %d: check the image and the credentials of the target", answer.StatusCode)
	case errors.As(err, &answer):
	default:
		if f := classify(err); f.Reason != transfer.ReasonInternal {
			return f
		}
	}
	return failed(transfer.ReasonUnreachableTarget, registry.Temporary(err), "%s: %v", m.Task.Package.Target.Image, err)
}
