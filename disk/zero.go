package disk

import (
	"bytes"
	"fmt"
	"io"
)

// ZeroBlock is the least number of zeros, in bytes and aligned, that becomes a hole.
const ZeroBlock = 4096

var zeros [64 << 10]byte

// IsZero returns whether all bytes are zero.
func IsZero(p []byte) bool {
	for len(p) > len(zeros) {
		if !bytes.Equal(p[:len(zeros)], zeros[:]) {
			return false
		}
		p = p[len(zeros):]
	}
	return bytes.Equal(p, zeros[:len(p)])
}

// WriteNonzero writes p to an offset without its blocks of zeros.
func WriteNonzero(w io.WriterAt, p []byte, offset int64) error {
	for start := 0; start < len(p); {
		end := start
		for end < len(p) && !IsZero(p[end:min(end+ZeroBlock, len(p))]) {
			end = min(end+ZeroBlock, len(p))
		}
		if end > start {
			if _, err := w.WriteAt(p[start:end], offset+int64(start)); err != nil {
				return fmt.Errorf("writing %d bytes at byte %d of the disk: %w", end-start, offset+int64(start), err)
			}
		}
		// The block at end is zero.
		start = end + ZeroBlock
	}
	return nil
}
