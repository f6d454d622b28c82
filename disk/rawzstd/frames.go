package rawzstd

import "encoding/binary"

// The parts of a frame (RFC 8878, section 3.1.1).
const (
	magic = 0xfd2fb528
	// sizeOfContent is a frame header descriptor: one segment, whose size follows in 4 bytes; no checksum.
	sizeOfContent = 0b10_1_00000
	blockBytes    = 128 << 10
	// lastBlock and repeated are a block's flags: the last one, and one byte that is repeated.
	lastBlock = 1
	repeated  = 1 << 1
)

// appendHeader appends the beginning of a frame with a content of so many bytes.
func appendHeader(b []byte, size int64) []byte {
	b = binary.LittleEndian.AppendUint32(b, magic)
	b = append(b, sizeOfContent)
	return binary.LittleEndian.AppendUint32(b, uint32(size))
}

// zeroFrame returns a frame of zeros: 4 bytes for each 128 KiB, where a compressor writes 14.
func zeroFrame(size int64) []byte {
	frame := appendHeader(nil, size)
	for left := size; left > 0; left -= blockBytes {
		header := uint32(min(left, blockBytes))<<3 | repeated
		if left <= blockBytes {
			header |= lastBlock
		}
		// 3 bytes of header, and the byte that is repeated.
		frame = binary.LittleEndian.AppendUint32(frame, header)
	}
	return frame
}

// appendUncompressed appends a frame with a content that is not compressed.
func appendUncompressed(b, content []byte) []byte {
	b = appendHeader(b, int64(len(content)))
	for len(content) > 0 {
		block := content[:min(len(content), blockBytes)]
		content = content[len(block):]
		header := uint32(len(block)) << 3
		if len(content) == 0 {
			header |= lastBlock
		}
		b = append(b, byte(header), byte(header>>8), byte(header>>16))
		b = append(b, block...)
	}
	return b
}
