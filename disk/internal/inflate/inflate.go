package inflate

import (
	"encoding/binary"
	"errors"
	"hash/adler32"
	"sync"
)

// Errors of what is not valid data.
var (
	ErrCorrupt   = errors.New("the compressed data is corrupt")
	ErrTruncated = errors.New("the compressed data is truncated")
	ErrTooLong   = errors.New("the data is longer than its unit")
	ErrChecksum  = errors.New("the checksum of the data is wrong")
)

type decoder struct {
	literals  [literalTable]entry
	distances [distanceTable]entry
	lengths   [lengthTable]entry
	// words are the lengths of code words.
	words [literalCount + distanceCount]uint8
	// scratch receives what is longer than the caller's buffer.
	scratch []byte
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// Raw decompresses DEFLATE data of at most limit bytes and returns its length. dst receives the data, or the start of it if dst is shorter.
// Other data may follow in src.
func Raw(src, dst []byte, limit int) (int, error) {
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	into := d.room(dst, limit)
	n, _, err := d.inflate(src, into)
	if err == nil && len(dst) < limit {
		copy(dst, into[:n])
	}
	return n, err
}

// Zlib is Raw for zlib data, whose checksum it checks.
func Zlib(src, dst []byte, limit int) (int, error) {
	if len(src) < 2 {
		return 0, ErrTruncated
	}
	if src[0]&15 != 8 || src[0]>>4 > 7 || src[1]&0x20 != 0 || (uint(src[0])<<8|uint(src[1]))%31 != 0 {
		return 0, ErrCorrupt
	}
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	into := d.room(dst, limit)
	n, read, err := d.inflate(src[2:], into)
	if err != nil {
		return 0, err
	}
	if len(src) < 2+read+4 {
		return 0, ErrTruncated
	}
	if adler32.Checksum(into[:n]) != binary.BigEndian.Uint32(src[2+read:]) {
		return 0, ErrChecksum
	}
	if len(dst) < limit {
		copy(dst, into[:n])
	}
	return n, nil
}

// room returns a buffer of limit bytes, dst if it is as long.
func (d *decoder) room(dst []byte, limit int) []byte {
	if len(dst) >= limit {
		return dst[:limit]
	}
	if cap(d.scratch) < limit {
		d.scratch = make([]byte, limit)
	}
	return d.scratch[:limit]
}

// buffers are of the largest compressed unit that is usual.
var buffers sync.Pool

// Buffer returns a buffer of a length in bytes, with any content. The caller returns it to Release.
func Buffer(length int) *[]byte {
	if b, ok := buffers.Get().(*[]byte); ok && cap(*b) >= length {
		*b = (*b)[:length]
		return b
	}
	b := make([]byte, length, max(length, 80<<10))
	return &b
}

// Release retains a buffer for the next call of Buffer.
func Release(b *[]byte) { buffers.Put(b) }
