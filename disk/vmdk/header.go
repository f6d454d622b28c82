package vmdk

import (
	"encoding/binary"

	"github.com/vmstencil/stencil/disk"
)

const (
	sector = 512
	// magic of a sparse extent, "KDMV".
	magic = 0x564d444b
	// footerAtEnd as the offset of the grain directory refers to the footer.
	footerAtEnd = ^uint64(0)
	// tableEntries is the number of entries of a grain table. VMware's specification allows no other.
	tableEntries = 512
	tableBytes   = tableEntries * 4
	// maxGrain is the largest grain in bytes that is read. VMware and QEMU write 64 KiB.
	maxGrain = 2 << 20
	// maxDirectory is the largest grain directory in bytes: 64 TiB of 64 KiB grains.
	maxDirectory = 8 << 20
	// maxDescriptor is the largest descriptor in bytes.
	maxDescriptor = 64 << 10
)

// Flags of a header.
const (
	flagNewlines   = 1 << 0
	flagRedundant  = 1 << 1
	flagZeroGrains = 1 << 2
	flagCompressed = 1 << 16
	flagMarkers    = 1 << 17
	knownFlags     = flagNewlines | flagRedundant | flagZeroGrains | flagCompressed | flagMarkers
)

// compressDeflate is the only compression algorithm: RFC 1950.
const compressDeflate = 1

// Types of markers.
const (
	markerEndOfStream = iota
	markerTable
	markerDirectory
	markerFooter
)

// header is a SparseExtentHeader: the first sector of a sparse extent, and the footer of a stream. Offsets and sizes are in sectors.
type header struct {
	version          uint32
	flags            uint32
	capacity         uint64
	grain            uint64
	descriptorOffset uint64
	descriptorSize   uint64
	redundantOffset  uint64
	directoryOffset  uint64
	overhead         uint64
	compression      uint16
}

// newlines are bytes that a transfer as text would change.
const newlines = "\n \r\n"

// decodeHeader checks all that does not depend on the rest of the file.
func decodeHeader(b []byte) (header, error) {
	le := binary.LittleEndian
	if len(b) < sector {
		return header{}, disk.VMDK.Errorf("truncated: the header is %d bytes long, not %d", len(b), sector)
	}
	switch le.Uint32(b) {
	case magic:
	case 0x44574f43: // "COWD"
		return header{}, disk.VMDK.Errorf("a COWD sparse extent of ESX: convert it to streamOptimized with VMware's tools")
	case 0xcafebabe:
		return header{}, disk.VMDK.Errorf("an SEsparse snapshot extent: consolidate the snapshots and export the disk")
	default:
		return header{}, disk.VMDK.Errorf("no sparse extent: the magic number is %08x, not %08x", le.Uint32(b), magic)
	}
	h := header{
		version:          le.Uint32(b[4:]),
		flags:            le.Uint32(b[8:]),
		capacity:         le.Uint64(b[12:]),
		grain:            le.Uint64(b[20:]),
		descriptorOffset: le.Uint64(b[28:]),
		descriptorSize:   le.Uint64(b[36:]),
		redundantOffset:  le.Uint64(b[48:]),
		directoryOffset:  le.Uint64(b[56:]),
		overhead:         le.Uint64(b[64:]),
		compression:      le.Uint16(b[77:]),
	}
	entries := le.Uint32(b[44:])
	switch {
	case h.version < 1 || h.version > 3:
		return h, disk.VMDK.Errorf("version %d of the header is not supported: 1 to 3 are", h.version)
	case h.flags&flagNewlines != 0 && string(b[73:77]) != newlines:
		return h, disk.VMDK.Errorf("damaged by a transfer as text: its newline bytes are %q", b[73:77])
	case h.flags&^knownFlags != 0:
		return h, disk.VMDK.Errorf("unknown flags %#x in the header", h.flags&^knownFlags)
	case h.capacity > uint64(disk.MaxSize/sector):
		return h, disk.VMDK.Errorf("a capacity of %d sectors is more than the limit of %d", h.capacity, disk.MaxSize/sector)
	case h.grain < 8 || h.grain > maxGrain/sector || h.grain&(h.grain-1) != 0:
		return h, disk.VMDK.Errorf("a grain of %d sectors is not a power of two from 8 to %d", h.grain, maxGrain/sector)
	case entries != tableEntries:
		return h, disk.VMDK.Errorf("grain tables of %d entries are not supported: %d are", entries, tableEntries)
	case h.directoryBytes() > maxDirectory:
		return h, disk.VMDK.Errorf("a capacity of %d sectors in grains of %d needs a grain directory of %d bytes: the limit is %d", h.capacity, h.grain, h.directoryBytes(), maxDirectory)
	case h.compressed() && h.compression != compressDeflate:
		return h, disk.VMDK.Errorf("compression algorithm %d is not supported: %d (deflate) is", h.compression, compressDeflate)
	case !h.compressed() && h.flags&flagMarkers != 0:
		return h, disk.VMDK.Errorf("grains with markers that are not compressed")
	case h.compressed() && h.flags&flagMarkers == 0:
		return h, disk.VMDK.Errorf("compressed grains without markers")
	}
	return h, nil
}

func (h header) encode() []byte {
	le := binary.LittleEndian
	b := make([]byte, sector)
	le.PutUint32(b, magic)
	le.PutUint32(b[4:], h.version)
	le.PutUint32(b[8:], h.flags)
	le.PutUint64(b[12:], h.capacity)
	le.PutUint64(b[20:], h.grain)
	le.PutUint64(b[28:], h.descriptorOffset)
	le.PutUint64(b[36:], h.descriptorSize)
	le.PutUint32(b[44:], tableEntries)
	le.PutUint64(b[48:], h.redundantOffset)
	le.PutUint64(b[56:], h.directoryOffset)
	le.PutUint64(b[64:], h.overhead)
	copy(b[73:], newlines)
	le.PutUint16(b[77:], h.compression)
	return b
}

func (h header) compressed() bool  { return h.flags&flagCompressed != 0 }
func (h header) size() int64       { return int64(h.capacity) * sector }
func (h header) grainBytes() int64 { return int64(h.grain) * sector }

// grains is the number of grains of the disk; the last may be a part.
func (h header) grains() int64 { return int64((h.capacity + h.grain - 1) / h.grain) }

// tables is the number of entries of the grain directory.
func (h header) tables() int64 { return (h.grains() + tableEntries - 1) / tableEntries }

func (h header) directoryBytes() int64 { return h.tables() * 4 }

// marker precedes a grain (size is not 0) or metadata.
type marker struct {
	// value is the first sector of the grain on the disk, or the number of sectors of the metadata.
	value uint64
	// size of a compressed grain in bytes, without the marker.
	size uint32
	// kind of metadata.
	kind uint32
}

// markerBytes is the length of a marker before the data of a grain.
const markerBytes = 12

func decodeMarker(b []byte) marker {
	le := binary.LittleEndian
	return marker{value: le.Uint64(b), size: le.Uint32(b[8:]), kind: le.Uint32(b[12:])}
}

// encodeMarker returns the marker of metadata.
func encodeMarker(kind uint32, sectors uint64) []byte {
	b := make([]byte, sector)
	binary.LittleEndian.PutUint64(b, sectors)
	binary.LittleEndian.PutUint32(b[12:], kind)
	return b
}
