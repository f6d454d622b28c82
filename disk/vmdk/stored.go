package vmdk

import (
	"encoding/binary"

	"github.com/vmstencil/stencil/disk"
)

// storedGrain is the number of bytes of a grain in zlib's format without compression: 2 bytes of header, 2 blocks with 5 bytes of header
// (a block holds 65535 bytes at most), 4 bytes of checksum.
const storedGrain = 2 + 5 + 65535 + 5 + 1 + 4

// storedSectors is the number of sectors that a stored grain takes with its marker.
const storedSectors = (markerBytes + storedGrain + sector - 1) / sector

// storedLayout counts the grains that hold data.
func (e *Encoder) storedLayout() (*Layout, error) {
	layout := newLayout(e.size)
	group, grains := 0, int64(0)
	finish := func(next int) error {
		for ; group < next; group++ {
			if err := layout.add(group, grains*storedSectors); err != nil {
				return err
			}
			grains = 0
		}
		return nil
	}
	for span, err := range disk.Spans(e.source, grainBytes, groupBytes) {
		if err != nil {
			return nil, err
		}
		if err := finish(int(span.Offset / groupBytes)); err != nil {
			return nil, err
		}
		grains += (span.Length + grainBytes - 1) / grainBytes
	}
	return layout, finish(len(layout.tables))
}

// appendStored appends a grain in zlib's format without compression.
func appendStored(b, grain []byte, checksum uint32) []byte {
	b = append(b, 0x78, 0x01)
	for len(grain) > 0 {
		block := grain[:min(len(grain), 65535)]
		grain = grain[len(block):]
		final := byte(0)
		if len(grain) == 0 {
			final = 1
		}
		b = append(b, final)
		b = binary.LittleEndian.AppendUint16(b, uint16(len(block)))
		b = binary.LittleEndian.AppendUint16(b, ^uint16(len(block)))
		b = append(b, block...)
	}
	return binary.BigEndian.AppendUint32(b, checksum)
}
