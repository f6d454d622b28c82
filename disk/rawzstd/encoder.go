package rawzstd

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"sort"

	"github.com/klauspost/compress/zstd"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/internal/ordered"
)

const (
	// frameBytes is the number of bytes of the disk in a frame.
	frameBytes = 1 << 20
	// maxWorkers bounds memory. So many compress as fast as one computes the digest.
	maxWorkers = 8
	// maxBestWorkers bounds memory: each one has tables of 34 MiB.
	maxBestWorkers = 2
)

// Encoding is how frames are written.
type Encoding string

const (
	// Fast compresses each frame at klauspost/compress's default level, about zstd's level 3.
	Fast Encoding = "fast"
	// Best compresses each frame at its highest level: about a twentieth smaller than Fast, in about ten times its time, by at most two goroutines.
	Best Encoding = "best"
	// Uncompressed writes frames uncompressed. Only zeros take less than their size.
	Uncompressed Encoding = "uncompressed"
)

// ErrChanged is returned if the disk has other data than when its layout was computed.
var ErrChanged = errors.New("the disk has changed since it was read first: stop what writes to it")

// Layout describes a stream.
type Layout struct {
	// Size is the number of bytes of the stream, Digest its SHA-256.
	Size   int64
	Digest [sha256.Size]byte
	parts  []part
}

// part is a range of the disk, and where it begins in the stream.
type part struct {
	span  disk.Range
	start int64
}

// Compressor has the memory of compression, which encoders share that are used one after another.
type Compressor struct {
	// zstd is nil for Uncompressed.
	zstd    *zstd.Encoder
	workers int
}

// NewCompressor returns a compressor for a number of goroutines, as [disk.Options] has it. An empty encoding is Fast.
func NewCompressor(encoding Encoding, workers int) (*Compressor, error) {
	workers = min(disk.Options{Workers: workers}.WorkersOrDefault(), maxWorkers)
	level := zstd.SpeedDefault
	switch encoding {
	case "", Fast:
	case Best:
		level, workers = zstd.SpeedBestCompression, min(workers, maxBestWorkers)
	case Uncompressed:
		return &Compressor{workers: workers}, nil
	default:
		return nil, fmt.Errorf("unknown encoding %q: choose %q, %q or %q", encoding, Fast, Best, Uncompressed)
	}
	made, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithWindowSize(frameBytes), zstd.WithLowerEncoderMem(true), zstd.WithEncoderConcurrency(workers))
	if err != nil {
		return nil, fmt.Errorf("preparing zstd: %w", err)
	}
	return &Compressor{made, workers}, nil
}

// append appends the frame of a part of the disk.
func (c *Compressor) append(b, data []byte) []byte {
	if c.zstd == nil {
		return appendUncompressed(b, data)
	}
	return c.zstd.EncodeAll(data, b)
}

// Encoder returns an encoder. A disk has at least 1 byte. progress receives the number of bytes of data that are done; it may be nil.
func (c *Compressor) Encoder(source disk.Image, progress func(done int64)) (*Encoder, error) {
	size := source.Info().Size
	if size < 1 || size > disk.MaxSize {
		return nil, fmt.Errorf("a disk of %d bytes is outside 1 to %d", size, disk.MaxSize)
	}
	return &Encoder{source: source, progress: progress, compressor: c, zeros: zeroFrame(frameBytes), last: zeroFrame((size-1)%frameBytes + 1)}, nil
}

// Encoder writes a disk as a stream.
type Encoder struct {
	source     disk.Image
	progress   func(done int64)
	compressor *Compressor
	// zeros is a frame of zeros, last one of the length of the last frame of the disk.
	zeros, last []byte
}

// NewEncoder returns an encoder with a compressor of its own, for Fast.
func NewEncoder(source disk.Image, options disk.Options) (*Encoder, error) {
	compressor, err := NewCompressor(Fast, options.Workers)
	if err != nil {
		return nil, err
	}
	return compressor.Encoder(source, options.Progress)
}

// Layout compresses the disk and discards the result.
func (e *Encoder) Layout(ctx context.Context) (*Layout, error) { return e.Write(ctx, io.Discard) }

// Write writes the stream in one pass and returns its layout.
func (e *Encoder) Write(ctx context.Context, w io.Writer) (*Layout, error) {
	layout, digest := &Layout{}, sha256.New()
	w = io.MultiWriter(digest, w)
	err := e.write(ctx, 0, func(span disk.Range, frames []byte) error {
		layout.parts = append(layout.parts, part{span, layout.Size})
		n, err := e.frames(w, span, frames, 0)
		layout.Size += n
		return err
	})
	if err != nil {
		return nil, err
	}
	digest.Sum(layout.Digest[:0])
	return layout, nil
}

// WriteFrom writes the stream from a byte on, without what precedes it. It returns ErrChanged if the stream differs from the layout.
func (e *Encoder) WriteFrom(ctx context.Context, w io.Writer, layout *Layout, offset int64) error {
	if offset < 0 || offset > layout.Size {
		return fmt.Errorf("byte %d is outside the stream of %d bytes", offset, layout.Size)
	}
	number := max(sort.Search(len(layout.parts), func(i int) bool { return layout.parts[i].start > offset })-1, 0)
	position := layout.parts[number].start
	err := e.write(ctx, layout.parts[number].span.Offset, func(span disk.Range, frames []byte) error {
		if number == len(layout.parts) || layout.parts[number] != (part{span, position}) {
			return ErrChanged
		}
		n, err := e.frames(w, span, frames, max(offset-position, 0))
		position += n
		number++
		return err
	})
	if err == nil && position != layout.Size {
		err = ErrChanged
	}
	return err
}

// job is a range of the disk and its frame; a range of zeros has none.
type job struct {
	span disk.Range
	hole bool
	data []byte
	// output has the frame, encoded is its beginning that is used.
	output, encoded []byte
}

// write passes the ranges of the disk from a multiple of frameBytes on, in order.
func (e *Encoder) write(ctx context.Context, begin int64, deliver func(span disk.Range, frames []byte) error) error {
	next, stop := iter.Pull2(disk.Spans(from{e.source, begin}, frameBytes, frameBytes))
	defer stop()
	position, size := begin, e.source.Info().Size
	var pending *disk.Range
	var done int64
	return ordered.Work[job]{
		Workers: e.compressor.workers,
		New:     func() *job { return &job{data: make([]byte, frameBytes)} },
		Next: func(j *job) (bool, error) {
			if pending == nil {
				span, err, more := next()
				if err != nil {
					return false, err
				}
				if !more {
					span = disk.Range{Offset: size}
				}
				pending = &span
			}
			if position < pending.Offset {
				j.span, j.hole = disk.Range{Offset: position, Length: pending.Offset - position}, true
				position = pending.Offset
				return true, nil
			}
			j.span, j.hole = *pending, false
			position, pending = pending.End(), nil
			return j.span.Length > 0, nil
		},
		Do: e.encode,
		Deliver: func(j *job) error {
			if !j.hole {
				done += j.span.Length
				if e.progress != nil {
					e.progress(done)
				}
			}
			return deliver(j.span, j.encoded)
		},
	}.Run(ctx)
}

// from is an image whose data begins at an offset.
type from struct {
	disk.Image
	offset int64
}

func (f from) NextData(offset int64) (disk.Range, error) {
	return f.Image.NextData(max(offset, f.offset))
}

// encode reads and compresses the data of a job.
func (e *Encoder) encode(j *job) error {
	j.encoded = nil
	if j.hole {
		return nil
	}
	data := j.data[:j.span.Length]
	if err := disk.ReadFull(e.source, data, j.span.Offset); err != nil {
		return err
	}
	if !disk.IsZero(data) {
		j.output = e.compressor.append(j.output[:0], data)
		j.encoded = j.output
	}
	return nil
}

// frames writes the frames of a range from a byte on, and returns the number of bytes of all of them. Without frames they are zeros.
func (e *Encoder) frames(w io.Writer, span disk.Range, frames []byte, skip int64) (n int64, err error) {
	write := func(p []byte) error {
		n += int64(len(p))
		if skip >= int64(len(p)) {
			skip -= int64(len(p))
			return nil
		}
		_, err := w.Write(p[skip:])
		skip = 0
		return err
	}
	if frames != nil {
		return n, write(frames)
	}
	for start := span.Offset; start < span.End(); start += frameBytes {
		frame := e.zeros
		if start+frameBytes > span.End() {
			frame = e.last
		}
		if err := write(frame); err != nil {
			return n, err
		}
	}
	return n, nil
}
