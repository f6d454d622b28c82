package rawzstd

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	// bufferBytes is the number of bytes of the stream that are read at once.
	bufferBytes = 256 << 10
	// maxFrame is the longest frame in bytes that is expanded alone. A frame of frameBytes that cannot be compressed has a few bytes more.
	maxFrame = frameBytes + 64<<10
	// checksumBytes follow the blocks of a frame that has a checksum.
	checksumBytes = 4
)

// The parts of a block's header of 3 bytes (RFC 8878, section 3.1.1.2).
const (
	blockHeader   = 3
	blockKind     = 0b110
	reservedKind  = 0b110
	blockSizeBits = 3
)

// scanner divides a stream into frames.
type scanner struct{ from *bufio.Reader }

// next appends the next frame to p, and returns the number of bytes that it expands to. If it is not alone, the frame is too large to be expanded
// in memory, or does not have its length: p then has its beginning. The error after the last frame is io.EOF.
func (s scanner) next(p []byte) (frame []byte, length int64, alone bool, err error) {
	start, err := s.from.Peek(zstd.HeaderMaxSize)
	if len(start) == 0 || err != nil && !errors.Is(err, io.EOF) {
		return p, 0, false, err
	}
	var header zstd.Header
	if err := header.Decode(start); err != nil {
		return p, 0, false, unexpected(err)
	}
	if header.Skippable || !header.HasFCS || header.FrameContentSize > frameBytes {
		return p, 0, false, nil
	}
	if p, err = s.read(p, header.HeaderSize); err != nil {
		return p, 0, false, err
	}
	for last := false; !last; {
		if p, err = s.read(p, blockHeader); err != nil {
			return p, 0, false, err
		}
		b := p[len(p)-blockHeader:]
		block := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
		last = block&lastBlock != 0
		size := block >> blockSizeBits
		switch block & blockKind {
		case reservedKind:
			return p, 0, false, zstd.ErrReservedBlockType
		case repeated:
			size = 1
		}
		if len(p)+size > maxFrame {
			return p, 0, false, nil
		}
		if p, err = s.read(p, size); err != nil {
			return p, 0, false, err
		}
	}
	if header.HasCheckSum {
		if p, err = s.read(p, checksumBytes); err != nil {
			return p, 0, false, err
		}
	}
	return p, int64(header.FrameContentSize), true, nil
}

// read appends bytes of the stream.
func (s scanner) read(p []byte, count int) ([]byte, error) {
	length := len(p)
	p = append(p, make([]byte, count)...)
	_, err := io.ReadFull(s.from, p[length:])
	return p, unexpected(err)
}

// unexpected is the error of a stream that ends in a frame.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
