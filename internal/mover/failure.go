package mover

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/rawzstd"
	"github.com/vmstencil/stencil/internal/outbound"
	"github.com/vmstencil/stencil/oci"
	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/ova"
	"github.com/vmstencil/stencil/transfer"
)

// maxMessage bounds messages: names in packages are not trusted.
const maxMessage = 2048

func failed(reason string, retry bool, format string, arguments ...any) *transfer.Failure {
	return &transfer.Failure{Reason: reason, Retry: retry, Message: fmt.Sprintf(format, arguments...)}
}

// failureOf returns the failure that an error is.
func failureOf(err error) *transfer.Failure {
	f := classify(err)
	if len(f.Message) > maxMessage {
		f.Message = strings.ToValidUTF8(f.Message[:maxMessage], "") + "…"
	}
	return f
}

func classify(err error) *transfer.Failure {
	// A failure may be the cause of an error of the archive.
	if known := (*transfer.Failure)(nil); errors.As(err, &known) {
		copied := *known
		return &copied
	}
	as := func(reason string, retry bool) *transfer.Failure { return failed(reason, retry, "%v", err) }
	var archive *ova.Error
	var image *disk.FormatError
	var descriptor *ovf.DescriptorError
	var unsupported *ovf.UnsupportedError
	var artifact *oci.Error
	var stream *rawzstd.StreamError
	var answer *transport.Error
	switch {
	case errors.Is(err, ova.ErrDigest):
		return as(transfer.ReasonManifestMismatch, false)
	case errors.Is(err, ova.ErrNoManifest):
		return as(transfer.ReasonManifestMissing, false)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return as(transfer.ReasonNoSpace, false)
	case errors.Is(err, context.Canceled):
		return failed(transfer.ReasonInterrupted, true, "the mover was ended")
	case errors.As(err, &unsupported):
		return as(transfer.ReasonUnsupported, false)
	case errors.As(err, &archive), errors.As(err, &image), errors.As(err, &descriptor), errors.As(err, &artifact), errors.As(err, &stream):
		return as(transfer.ReasonNotAPackage, false)
	case errors.Is(err, outbound.ErrPrivate):
		return as(transfer.ReasonSourceDenied, false)
	case errors.As(err, &answer):
		switch answer.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return failed(transfer.ReasonSourceDenied, false, "the registry answers %d: check the image and the credentials of the source", answer.StatusCode)
		case http.StatusNotFound:
			return failed(transfer.ReasonUnreachableSource, false, "the registry answers 404: it has no such artifact")
		}
		return failed(transfer.ReasonUnreachableSource, true, "the registry answers %d", answer.StatusCode)
	}
	return as(transfer.ReasonInternal, true)
}
