package ova

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ulikunitz/xz"

	"github.com/vmstencil/stencil/ovf"
)

// gzipMagic begins what gzip has compressed.
const gzipMagic = "\x1f\x8b"

// packed corrects the compression of a disk that is compressed with gzip although the descriptor does not say so. start is the beginning of its file: no format
// of disks begins like gzip.
func (c *contents) packed(f *ovf.File, start []byte) {
	isDisk := func(d ovf.Disk) bool { return d.FileRef == f.ID }
	if f.Compression == "" && string(start) == gzipMagic && slices.ContainsFunc(c.envelope.Disks, isDisk) {
		f.Compression = "gzip"
		c.warn("file "+f.Href, "it is compressed with gzip, and the descriptor does not say so", false)
	}
}

// expand decompresses a file. The reader fails when more than limit bytes are read.
func expand(name, compression string, r io.Reader, limit int64) (io.Reader, error) {
	var expanded io.Reader
	var err error
	switch compression {
	case "":
		return r, nil
	case "gzip":
		expanded, err = gzip.NewReader(r)
	case "xz":
		expanded, err = xz.NewReader(newDictionaryGuard(r))
	default:
		err = fmt.Errorf("the compression %s is not supported", shown(compression))
	}
	if err != nil {
		return nil, broken(name, err)
	}
	return &bounded{name: name, in: expanded, left: limit, limit: limit}, nil
}

// bounded fails instead of returning more than a number of bytes.
type bounded struct {
	name        string
	in          io.Reader
	left, limit int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 1<<62 && int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.in.Read(p)
	if int64(n) > b.left {
		n, b.left = int(b.left), 0
		return n, fail(b.name, "expands to more than %d bytes, the limit for a file of this disk capacity", b.limit)
	}
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		err = broken(b.name, err)
	}
	return n, err
}
