package vmdk

import (
	"github.com/vmstencil/stencil/disk"
)

const (
	// Grains that are written.
	grainSectors = 128
	grainBytes   = grainSectors * sector
	// groupBytes of the disk share a grain table.
	groupBytes = tableEntries * grainBytes
	// maxSectors is the number of sectors that a grain table can address.
	maxSectors = int64(1) << 32
	// descriptorSectors and firstGrain: the header is in sector 0, the descriptor follows, grains begin at a multiple of the grain size
	// as in VMware's own streams.
	descriptorSectors = 20
	firstGrain        = 128
	tableSectors      = tableBytes / sector
)

// EncoderVersion changes with the bytes that an Encoder writes for the same disk and options.
const EncoderVersion = "1"

// Encoding is how grains are written.
type Encoding string

const (
	// Fast compresses each grain at level 2 of klauspost/compress: a seventh to a fifth larger than at zlib's level 6, in about a
	// sixth of its time.
	Fast Encoding = "fast"
	// Best compresses each grain at level 8, which is within a thousandth of level 9: about a twelfth smaller than Fast, in about four times its time.
	Best Encoding = "best"
	// Uncompressed writes grains uncompressed in zlib's format, and leaves out those of zeros.
	Uncompressed Encoding = "uncompressed"
	// Stored writes grains uncompressed in zlib's format. The size follows from the ranges that the disk reports as data, without reading them.
	Stored Encoding = "stored"
)

// Layout is where the parts of a stream are. With it, the stream's size is known before it is written, and writing can begin anywhere.
type Layout struct {
	// tables holds the sector of the grain table of each group, that of its marker plus 1, 0 for a group without grains.
	tables []uint32
	// starts holds the first sector of each group.
	starts []uint32
	// end is the sector after the last group.
	end int64
}

func newLayout(size int64) *Layout {
	groups := (size + groupBytes - 1) / groupBytes
	return &Layout{tables: make([]uint32, groups), starts: make([]uint32, groups), end: firstGrain}
}

// add places a group with a number of sectors of grains.
func (l *Layout) add(group int, sectors int64) error {
	l.starts[group] = uint32(l.end)
	if sectors == 0 {
		return nil
	}
	// The marker and the table follow the grains.
	table := l.end + sectors + 1
	if table+tableSectors >= maxSectors {
		return disk.VMDK.Errorf("the disk has more data than the %d bytes that a stream can hold", maxSectors*sector)
	}
	l.tables[group] = uint32(table)
	l.end = table + tableSectors
	return nil
}

func (l *Layout) directorySectors() int64 {
	return (int64(len(l.tables))*4 + sector - 1) / sector
}

// Size returns the number of bytes of the stream.
func (l *Layout) Size() int64 {
	// The directory and the footer have markers, the end of the stream is one.
	return (l.end + 1 + l.directorySectors() + 1 + 1 + 1) * sector
}
