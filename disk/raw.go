package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// raw is a raw image. file is set where the operating system reports holes.
type raw struct {
	io.ReaderAt
	size int64
	file *os.File
}

// OpenRaw returns a raw image. If r is an *os.File, holes of the file are not read; NextData then changes the file's offset. size is in
// bytes, at most MaxSize; it need not be a multiple of 512.
func OpenRaw(r io.ReaderAt, size int64) (Image, error) {
	if size < 0 || size > MaxSize {
		return nil, Raw.Errorf("a size of %d bytes is outside 0 to %d", size, MaxSize)
	}
	image := &raw{ReaderAt: io.NewSectionReader(r, 0, size), size: size}
	if file, ok := r.(*os.File); ok {
		image.file = file
		image.ReaderAt = bounded{file, size}
	}
	return image, nil
}

func (r *raw) Info() Info { return Info{Format: Raw, Size: r.size, Unit: 1} }

func (r *raw) NextData(offset int64) (Range, error) {
	if offset >= r.size {
		return Range{}, io.EOF
	}
	if r.file == nil {
		return Range{offset, r.size - offset}, nil
	}
	start, end, err := seekData(r.file, offset)
	switch {
	case errors.Is(err, io.EOF):
		return Range{}, io.EOF
	case err != nil:
		return Range{}, fmt.Errorf("finding data of %s: %w", r.file.Name(), err)
	case start >= r.size:
		return Range{}, io.EOF
	}
	return Range{start, min(end, r.size) - start}, nil
}

// bounded reads a file up to a size. A file that is shorter is an error, not the end of the disk.
type bounded struct {
	file *os.File
	size int64
}

func (b bounded) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 {
		return 0, Raw.Errorf("read at negative offset %d", offset)
	}
	if offset >= b.size {
		return 0, io.EOF
	}
	ended := int64(len(p)) > b.size-offset
	if ended {
		p = p[:b.size-offset]
	}
	n, err := b.file.ReadAt(p, offset)
	if errors.Is(err, io.EOF) && n < len(p) {
		return n, Raw.Errorf("truncated: the file ends at byte %d of %d", offset+int64(n), b.size)
	}
	if err == nil && ended {
		err = io.EOF
	}
	return n, err
}
