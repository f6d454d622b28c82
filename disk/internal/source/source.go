// Package source reads parts of image files within their bounds.
package source

import (
	"errors"
	"io"

	"github.com/vmstencil/stencil/disk"
)

// Source is the file of an image.
type Source struct {
	io.ReaderAt
	// Size of the file in bytes.
	Size   int64
	Format disk.Format
}

// Check returns an error if a part is not within the file. Negative values stand for overflows.
func (s Source) Check(what string, offset, length int64) error {
	if offset < 0 || length < 0 {
		return s.Format.Errorf("%s: its place in the file overflows", what)
	}
	if offset > s.Size || length > s.Size-offset {
		return s.Format.Errorf("%s: %d bytes at byte %d are beyond the end of the file, which has %d bytes", what, length, offset, s.Size)
	}
	return nil
}

// Read fills p with the part at an offset. what names it in errors.
func (s Source) Read(what string, p []byte, offset int64) error {
	if err := s.Check(what, offset, int64(len(p))); err != nil {
		return err
	}
	n, err := s.ReadAt(p, offset)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return s.Format.Errorf("%s: the file ends at byte %d, before its size of %d bytes", what, offset+int64(n), s.Size)
	default:
		return err
	}
}
