package rawzstd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/vmstencil/stencil/disk"
)

// MaxWindow is the greatest window of a frame, in bytes. Decoders store so much of what they have expanded. That of KubeVirt's exports is 8 MiB.
const MaxWindow = 32 << 20

// StreamError reports a stream that is damaged, or has another size than it should.
type StreamError struct{ Problem string }

func (e *StreamError) Error() string { return "zstd: " + e.Problem }

// WriteRaw expands a stream to a file, which becomes a raw image of a size in bytes with holes where the disk is zero. It returns a StreamError if
// the stream is malformed or has another size, and stops at the first byte after it. progress receives the number of bytes of the disk that are done; it may be nil.
func WriteRaw(ctx context.Context, file *os.File, r io.Reader, size int64, progress func(done int64)) error {
	if err := disk.Clear(file, size); err != nil {
		return err
	}
	return Expand(ctx, file, r, size, progress)
}

// Expand is [WriteRaw] for a destination that reads as zeros where Expand does not write.
func Expand(ctx context.Context, dst io.WriterAt, r io.Reader, size int64, progress func(done int64)) error {
	source := &input{ctx: ctx, from: r}
	decoder, err := zstd.NewReader(source, zstd.WithDecoderMaxWindow(MaxWindow), zstd.WithDecoderConcurrency(4))
	if err != nil {
		return source.errorOr(err)
	}
	defer decoder.Close()
	buffer := make([]byte, frameBytes)
	for offset := int64(0); ; {
		// One byte more than the disk has shows a stream that is longer.
		n, err := fill(decoder, buffer[:min(frameBytes, size-offset+1)])
		if offset+int64(n) > size {
			return &StreamError{fmt.Sprintf("the disk has more than its %d bytes", size)}
		}
		if err := disk.WriteNonzero(dst, buffer[:n], offset); err != nil {
			return err
		}
		offset += int64(n)
		if progress != nil {
			progress(offset)
		}
		switch {
		case err == nil:
		case !errors.Is(err, io.EOF):
			return source.errorOr(err)
		case offset < size:
			return &StreamError{fmt.Sprintf("the disk ends at byte %d of %d", offset, size)}
		default:
			return nil
		}
	}
}

// fill reads until p is full. Other than io.ReadFull it returns the error of the reader itself, which distinguishes an end from a truncated stream.
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = r.Read(p[n:])
		n += more
	}
	return n, err
}

// input stores the error of its reader, which is not one of the stream.
type input struct {
	ctx  context.Context
	from io.Reader
	err  error
}

func (i *input) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		i.err = err
		return 0, err
	}
	n, err := i.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		i.err = err
	}
	return n, err
}

// errorOr returns the error of the reader, and otherwise that of the stream.
func (i *input) errorOr(err error) error {
	if i.err != nil {
		return i.err
	}
	return &StreamError{err.Error()}
}
