package vmdk

import (
	"bytes"
	"encoding/binary"
	"hash/adler32"

	"github.com/klauspost/compress/flate"
)

// Levels of klauspost/compress.
const (
	fastLevel = 2
	bestLevel = 8
)

// The second bytes of zlib's header: its check bits, and how strongly the data are compressed (RFC 1950, section 2.2).
const (
	normalFlags  = 0x9c
	maximumFlags = 0xda
)

// grainEncoder compresses grains. It is not safe for concurrent use.
type grainEncoder struct {
	stored bool
	level  int
	flags  byte
	writer *flate.Writer
	buffer bytes.Buffer
}

func newGrainEncoder(encoding Encoding) *grainEncoder {
	if encoding == Best {
		return &grainEncoder{level: bestLevel, flags: maximumFlags}
	}
	return &grainEncoder{stored: encoding == Stored || encoding == Uncompressed, level: fastLevel, flags: normalFlags}
}

// append appends a grain with its marker, in whole sectors.
func (g *grainEncoder) append(b []byte, first uint64, grain []byte) ([]byte, error) {
	start := len(b)
	b = binary.LittleEndian.AppendUint64(b, first)
	b = append(b, 0, 0, 0, 0)
	checksum := adler32.Checksum(grain)
	if g.stored {
		b = appendStored(b, grain, checksum)
	} else {
		compressed, err := g.compress(grain)
		if err != nil {
			return b, err
		}
		b = append(b, 0x78, g.flags)
		b = append(b, compressed...)
		b = binary.BigEndian.AppendUint32(b, checksum)
	}
	binary.LittleEndian.PutUint32(b[start+8:], uint32(len(b)-start-markerBytes))
	if rest := (len(b) - start) % sector; rest != 0 {
		b = append(b, make([]byte, sector-rest)...)
	}
	return b, nil
}

func (g *grainEncoder) compress(grain []byte) ([]byte, error) {
	g.buffer.Reset()
	if g.writer == nil {
		writer, err := flate.NewWriter(&g.buffer, g.level)
		if err != nil {
			return nil, err
		}
		g.writer = writer
	} else {
		g.writer.Reset(&g.buffer)
	}
	if _, err := g.writer.Write(grain); err != nil {
		return nil, err
	}
	if err := g.writer.Close(); err != nil {
		return nil, err
	}
	return g.buffer.Bytes(), nil
}
