package qcow2

import (
	"encoding/binary"
	"errors"
	"fmt"

	zstdlib "github.com/klauspost/compress/zstd"

	"github.com/vmstencil/stencil/disk/internal/inflate"
)

// zstdDecoder decompresses clusters. It is safe for concurrent use.
type zstdDecoder struct {
	decoder *zstdlib.Decoder
}

// maxDecoders is the number of clusters that are decompressed at a time.
const maxDecoders = 16

func newZstd() (*zstdDecoder, error) {
	// Without a reader there are no goroutines. What a frame declares is bounded by the buffer for its data.
	decoder, err := zstdlib.NewReader(nil, zstdlib.WithDecoderConcurrency(maxDecoders), zstdlib.WithDecodeAllCapLimit(true), zstdlib.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("making a zstd decoder: %w", err)
	}
	return &zstdDecoder{decoder: decoder}, nil
}

// decode decompresses frames of at most limit bytes to p, or their start if p is shorter, and returns their length. Sectors of the next
// cluster may follow the last frame in src.
func (z *zstdDecoder) decode(src, p []byte, limit int) (int, error) {
	// The decoder's fast path copies up to 16 bytes more than there are.
	const spare = 64
	buffer := inflate.Buffer(limit + spare)
	defer inflate.Release(buffer)
	dst := (*buffer)[: 0 : limit+spare]
	for len(dst) < limit {
		length, err := frameLength(src)
		if err != nil {
			return 0, err
		}
		before := len(dst)
		dst, err = z.decoder.DecodeAll(src[:length], dst)
		if errors.Is(err, zstdlib.ErrDecoderSizeExceeded) || len(dst) > limit {
			return 0, inflate.ErrTooLong
		}
		if err != nil {
			return 0, inflate.ErrCorrupt
		}
		if len(dst) == before {
			// A frame without data: there is no next one in what QEMU writes.
			break
		}
		src = src[length:]
	}
	copy(p, dst)
	return len(dst), nil
}

// frameLength returns the length of the first frame in b: RFC 8878, section 3.1.1.
func frameLength(b []byte) (int, error) {
	var header zstdlib.Header
	if err := header.Decode(b); err != nil || header.Skippable {
		return 0, inflate.ErrCorrupt
	}
	at := header.HeaderSize
	for last := false; !last; {
		if len(b)-at < 3 {
			return 0, inflate.ErrTruncated
		}
		block := binary.LittleEndian.Uint32([]byte{b[at], b[at+1], b[at+2], 0})
		last = block&1 == 1
		size := int(block >> 3)
		if block>>1&3 == 1 {
			// A repeated byte.
			size = 1
		}
		at += 3 + size
	}
	if header.HasCheckSum {
		at += 4
	}
	if at > len(b) {
		return 0, inflate.ErrTruncated
	}
	return at, nil
}
