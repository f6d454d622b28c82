package mover

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
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
		err := repository.Upload(ctx, blob, func(ctx context.Context, w io.Writer, offset int64) error {
			return copyFrom(ctx, made, blob, w, offset)
		}, func(int64) {})
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

// copyFrom writes a blob from a byte on. What is skipped is verified too.
func copyFrom(ctx context.Context, from *artifact, blob v1.Descriptor, w io.Writer, offset int64) error {
	content, err := from.layer(ctx, blob)
	if err != nil {
		return err
	}
	stream := &interruptible{ctx, content}
	if _, err = io.CopyN(io.Discard, stream, offset); err == nil {
		_, err = io.Copy(w, stream)
	}
	return errors.Join(err, content.Close())
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
