package disktest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/vmstencil/stencil/disk"
)

// Hostile is a change of a valid image and the error of reading it.
type Hostile struct {
	// Name is a sentence.
	Name string
	// Change returns the image. It may change b, which is a copy.
	Change func(b []byte) []byte
	Want   string
}

// Set returns a change of bytes at an offset.
func Set(offset int64, value ...byte) func([]byte) []byte {
	return func(b []byte) []byte {
		copy(b[offset:], value)
		return b
	}
}

// Cut returns a change of the length, counted from the end if it is negative.
func Cut(length int64) func([]byte) []byte {
	return func(b []byte) []byte {
		if length < 0 {
			length += int64(len(b))
		}
		return b[:length]
	}
}

// walkLimit is far more data than any test image has.
const walkLimit = 1 << 30

// Read opens an image and reads all of its data.
func Read(ctx context.Context, open Opener, b []byte) error {
	image, err := open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	_, err = Walk(ctx, image, walkLimit)
	return err
}

// CheckHostile reads changed images. Each is rejected by a FormatError with its exact message.
func CheckHostile(t *testing.T, open Opener, valid []byte, cases []Hostile) {
	t.Helper()
	if err := Read(t.Context(), open, valid); err != nil {
		t.Fatalf("the image without a change: %v", err)
	}
	for _, tc := range cases {
		t.Run(tc.Name, func(t *testing.T) {
			err := Read(t.Context(), open, tc.Change(bytes.Clone(valid)))
			var problem *disk.FormatError
			if !errors.As(err, &problem) {
				t.Fatalf("the error is no FormatError: %v", err)
			}
			if err.Error() != tc.Want {
				t.Errorf("the error is\n\t%s\ninstead of\n\t%s", err, tc.Want)
			}
		})
	}
}

// CheckTruncated reads an image that is cut in some 500 places, at the ends of sectors and within them. Each is rejected, unless what is missing is
// not part of the disk and all data is still read.
func CheckTruncated(t *testing.T, open Opener, valid []byte, raw []byte, mayBeComplete bool) {
	t.Helper()
	step := max(len(valid)/512/170, 1) * 512
	for length := 0; length < len(valid); length += step {
		for _, length := range []int{length, length + 1, length + 511} {
			if length >= len(valid) {
				continue
			}
			image, err := open(bytes.NewReader(valid[:length]), int64(length))
			got := make([]byte, len(raw))
			if err == nil {
				err = ReadData(image, got)
			}
			var problem *disk.FormatError
			if err == nil && (!mayBeComplete || !bytes.Equal(got, raw)) {
				t.Fatalf("the first %d of %d bytes are accepted", length, len(valid))
			}
			if err != nil && !errors.As(err, &problem) {
				t.Fatalf("the first %d of %d bytes: no FormatError: %v", length, len(valid), err)
			}
		}
	}
}

// ReadData reads the data of an image into a buffer of zeros.
func ReadData(image disk.Image, into []byte) error {
	for span, err := range disk.Spans(image, disk.ZeroBlock, MiB) {
		if err != nil {
			return err
		}
		if err := disk.ReadFull(image, into[span.Offset:span.End()], span.Offset); err != nil {
			return err
		}
	}
	return nil
}

// Patch is an image with changes. It does not copy the image, so that images of MiB can be fuzzed.
type Patch struct {
	image []byte
	parts []part
}

type part struct {
	offset int64
	data   []byte
}

// NewPatch decodes the changes of a fuzz target: an offset in 4 bytes, a length in 1, and the data, over and over.
func NewPatch(image, changes []byte) *Patch {
	p := &Patch{image: image}
	for len(changes) > 5 {
		offset := int64(binary.LittleEndian.Uint32(changes)) % int64(len(image))
		length := min(int(changes[4]), len(changes)-5)
		p.Set(offset, changes[5:5+length])
		changes = changes[5+length:]
	}
	return p
}

// Set changes data at an offset.
func (p *Patch) Set(offset int64, data []byte) { p.parts = append(p.parts, part{offset, data}) }

// Size in bytes.
func (p *Patch) Size() int64 { return int64(len(p.image)) }

// ReadAt implements io.ReaderAt.
func (p *Patch) ReadAt(b []byte, offset int64) (int, error) {
	n, err := bytes.NewReader(p.image).ReadAt(b, offset)
	for _, part := range p.parts {
		if from := max(part.offset, offset); from < min(part.offset+int64(len(part.data)), offset+int64(n)) {
			copy(b[from-offset:n], part.data[from-part.offset:])
		}
	}
	return n, err
}

// Fuzz opens an image and reads its first data. Whatever the image is, this neither panics nor allocates more than a bound.
func Fuzz(t *testing.T, open Opener, r io.ReaderAt, size int64) {
	image, err := open(r, size)
	if err != nil {
		return
	}
	if size := image.Info().Size; size < 0 || size > disk.MaxSize {
		t.Fatalf("the size is %d", size)
	}
	const limit = 256 * KiB
	buffer := make([]byte, limit)
	read, end := int64(0), int64(0)
	for span, err := range disk.Spans(image, disk.ZeroBlock, limit) {
		if err != nil || read > MiB {
			return
		}
		if span.Offset < end || span.Length <= 0 || span.End() > image.Info().Size {
			t.Fatalf("the range %v follows byte %d of a disk of %d bytes", span, end, image.Info().Size)
		}
		end = span.End()
		read += span.Length
		if err := disk.ReadFull(image, buffer[:span.Length], span.Offset); err != nil {
			return
		}
	}
}
