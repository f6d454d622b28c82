package rawzstd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/internal/ordered"
)

// MaxWindow is the greatest window of a frame, in bytes. Decoders store so much of what they have expanded. That of KubeVirt's exports is 8 MiB.
const MaxWindow = 32 << 20

// StreamError reports a stream that is damaged, or has another size than it should.
type StreamError struct{ Problem string }

func (e *StreamError) Error() string { return "zstd: " + e.Problem }

// WriteRaw expands a stream to a file, which becomes a raw image of a size in bytes with holes where the disk is zero. It returns a StreamError if
// the stream is malformed or has another size, and stops at the first byte after it. Frames as an Encoder writes them are expanded in parallel.
// progress receives the number of bytes of the disk that are done; it may be nil.
func WriteRaw(ctx context.Context, file *os.File, r io.Reader, size int64, progress func(done int64)) error {
	if err := disk.Clear(file, size); err != nil {
		return err
	}
	return Expand(ctx, file, r, size, progress)
}

// Expand is [WriteRaw] for a destination that reads as zeros where Expand does not write.
func Expand(ctx context.Context, dst io.WriterAt, r io.Reader, size int64, progress func(done int64)) error {
	source := &input{ctx: ctx, from: r}
	if progress == nil {
		progress = func(int64) {}
	}
	e := &expansion{source: source, scanner: scanner{bufio.NewReaderSize(source, bufferBytes)}, dst: dst, size: size, progress: progress}
	if err := e.frames(ctx); err != nil {
		return err
	}
	if e.rest == nil && e.begin < size {
		return &StreamError{fmt.Sprintf("the disk ends at byte %d of %d", e.begin, size)}
	}
	if e.rest != nil {
		return e.stream()
	}
	return nil
}

// expansion is a disk that is being written.
type expansion struct {
	source   *input
	scanner  scanner
	dst      io.WriterAt
	size     int64
	progress func(done int64)
	// begin is the first byte of the disk that no frame has that was scanned. rest is the stream from there on, if its first frame is not one to expand alone.
	begin int64
	rest  io.Reader
}

// expanding is a frame.
type expanding struct {
	frame  []byte
	data   []byte
	offset int64
	length int64
}

// frames expands frames in parallel, until the stream ends or has a frame that is not to be expanded alone.
func (e *expansion) frames(ctx context.Context) error {
	workers := min(disk.Options{}.WorkersOrDefault(), maxWorkers)
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxWindow(MaxWindow), zstd.WithDecoderMaxMemory(frameBytes), zstd.WithDecoderConcurrency(workers))
	if err != nil {
		return fmt.Errorf("preparing zstd: %w", err)
	}
	defer decoder.Close()
	zeros := zeroFrame(frameBytes)
	return ordered.Work[expanding]{
		Workers: workers,
		New:     func() *expanding { return &expanding{} },
		Next: func(j *expanding) (more bool, err error) {
			var alone bool
			j.frame, j.length, alone, err = e.scanner.next(j.frame[:0])
			switch {
			case errors.Is(err, io.EOF):
				return false, nil
			case err != nil:
				return false, e.source.errorOr(err)
			case !alone:
				e.rest = io.MultiReader(bytes.NewReader(j.frame), e.scanner.from)
				return false, nil
			case j.length > e.size-e.begin:
				return false, e.longer()
			}
			j.offset, e.begin = e.begin, e.begin+j.length
			return true, nil
		},
		Do: func(j *expanding) (err error) {
			if bytes.Equal(j.frame, zeros) {
				j.data = j.data[:0]
				return nil
			}
			if j.data, err = decoder.DecodeAll(j.frame, j.data[:0]); err != nil {
				return &StreamError{err.Error()}
			}
			if int64(len(j.data)) != j.length {
				return &StreamError{fmt.Sprintf("a frame of %d bytes has %d", j.length, len(j.data))}
			}
			return nil
		},
		Deliver: func(j *expanding) error {
			if err := disk.WriteNonzero(e.dst, j.data, j.offset); err != nil {
				return err
			}
			e.progress(j.offset + j.length)
			return nil
		},
	}.Run(ctx)
}

func (e *expansion) longer() error {
	return &StreamError{fmt.Sprintf("the disk has more than its %d bytes", e.size)}
}

// stream expands the rest of the stream, one frame after another.
func (e *expansion) stream() error {
	decoder, err := zstd.NewReader(e.rest, zstd.WithDecoderMaxWindow(MaxWindow), zstd.WithDecoderConcurrency(4))
	if err != nil {
		return e.source.errorOr(err)
	}
	defer decoder.Close()
	buffer := make([]byte, frameBytes)
	for offset := e.begin; ; {
		// One byte more than the disk has shows a stream that is longer.
		n, err := fill(decoder, buffer[:min(frameBytes, e.size-offset+1)])
		if offset+int64(n) > e.size {
			return e.longer()
		}
		if err := disk.WriteNonzero(e.dst, buffer[:n], offset); err != nil {
			return err
		}
		offset += int64(n)
		e.progress(offset)
		switch {
		case err == nil:
		case !errors.Is(err, io.EOF):
			return e.source.errorOr(err)
		case offset < e.size:
			return &StreamError{fmt.Sprintf("the disk ends at byte %d of %d", offset, e.size)}
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
