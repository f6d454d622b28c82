package disk

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// chunk is the number of bytes that are read at once, rounded up to the unit of the image. Units are at most 2 MiB where they are
// compressed.
const chunk = 1 << 20

// maxWorkers and maxBuffers, in bytes, bound the memory for buffers.
const (
	maxWorkers = 16
	maxBuffers = 16 << 20
)

// Options of what reads a whole image.
type Options struct {
	// Workers is the number of goroutines, 1 to 16; 0 is the number of processors, and at least 4, so that reads and writes are in flight
	// while data is compressed.
	Workers int
	// Progress, if set, receives the number of bytes of data that are done. Calls are concurrent.
	Progress func(done int64)
}

// WorkersOrDefault returns the number of goroutines.
func (o Options) WorkersOrDefault() int {
	if o.Workers > 0 {
		return min(o.Workers, maxWorkers)
	}
	return min(max(runtime.GOMAXPROCS(0), 4), maxWorkers)
}

// chunkOf returns the unit and the greatest length of the ranges to read from an image.
func chunkOf(image Image) (unit, limit int64) {
	unit = image.Info().Unit
	if unit < ZeroBlock || unit > 2<<20 {
		unit = ZeroBlock
	}
	return unit, max(chunk/unit, 1) * unit
}

// Copy writes the data of an image to dst, which reads as zeros where Copy does not write. Blocks of zeros are not written. Its
// buffers have 1 MiB for each worker (2 MiB if that is the image's unit), and 16 MiB in all.
func Copy(ctx context.Context, dst io.WriterAt, src Image, options Options) error {
	group, ctx := errgroup.WithContext(ctx)
	spans := make(chan Range)
	unit, limit := chunkOf(src)
	group.Go(func() error {
		defer close(spans)
		for span, err := range Spans(src, unit, limit) {
			if err != nil {
				return err
			}
			select {
			case spans <- span:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	var done atomic.Int64
	// File systems lock a file for a write. Threads that wait for it there cost more time than goroutines that wait here.
	var writing sync.Mutex
	for range min(options.WorkersOrDefault(), int(maxBuffers/limit)) {
		group.Go(func() error {
			buffer := make([]byte, limit)
			for span := range spans {
				if err := copySpan(dst, &writing, src, span, buffer[:span.Length]); err != nil {
					return err
				}
				if options.Progress != nil {
					options.Progress(done.Add(span.Length))
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func copySpan(dst io.WriterAt, writing *sync.Mutex, src Image, span Range, buffer []byte) error {
	if err := ReadFull(src, buffer, span.Offset); err != nil {
		return err
	}
	writing.Lock()
	defer writing.Unlock()
	return WriteNonzero(dst, buffer, span.Offset)
}

// ReadFull fills p from an offset.
func ReadFull(r io.ReaderAt, p []byte, offset int64) error {
	n, err := r.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF { //nolint:errorlint // io.ReaderAt returns io.EOF itself.
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("reading %d bytes at byte %d of the disk: %w", len(p), offset, err)
}

// WriteRaw makes a file a raw image with holes where the disk is zero. What the file contained is discarded.
func WriteRaw(ctx context.Context, file *os.File, src Image, options Options) error {
	if err := Clear(file, src.Info().Size); err != nil {
		return err
	}
	return Copy(ctx, file, src, options)
}

// Clear makes a file one hole of a size in bytes.
func Clear(file *os.File, size int64) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("reading the size of %s: %w", file.Name(), err)
	}
	// Only a file with data is truncated to zero: ext4 flushes a file that was truncated to zero when it is closed, which takes as long as
	// copying.
	if info.Size() > 0 {
		err = file.Truncate(0)
	}
	if err == nil {
		err = file.Truncate(size)
	}
	if err != nil {
		return fmt.Errorf("setting the size of %s: %w", file.Name(), err)
	}
	return nil
}
