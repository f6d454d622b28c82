package vmdk

import (
	"encoding/binary"
	"io"
	"slices"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/internal/blocks"
	"github.com/vmstencil/stencil/disk/internal/inflate"
	"github.com/vmstencil/stencil/disk/internal/source"
)

// tablesMemory is the number of bytes of grain tables that are cached.
const tablesMemory = 1 << 20

// image is the map of a sparse extent.
type image struct {
	header
	source.Source
	// directory holds the sectors of the grain tables, 0 for none.
	directory []uint32
	tables    *source.Tables
}

// Open returns the disk in a streamOptimized or monolithicSparse file of a size in bytes. It reads all tables of the file first: errors in
// them are found before any data is read.
func Open(r io.ReaderAt, size int64) (disk.Image, error) {
	file := source.Source{ReaderAt: r, Size: size, Format: disk.VMDK}
	start := make([]byte, min(size, maxDescriptor))
	if err := file.Read("header", start, 0); err != nil {
		return nil, err
	}
	if isDescriptor(start) {
		return nil, checkDescriptor(start, true)
	}
	h, err := decodeHeader(start)
	if err != nil {
		return nil, err
	}
	if err := readDescriptor(file, h); err != nil {
		return nil, err
	}
	if h.directoryOffset == footerAtEnd {
		if h, err = readFooter(file, h); err != nil {
			return nil, err
		}
	}
	m := &image{header: h, Source: file, tables: source.NewTables(file, "grain table", tableBytes, tablesMemory)}
	if err := m.readDirectory(); err != nil {
		return nil, err
	}
	if err := m.checkTables(); err != nil {
		return nil, err
	}
	return blocks.New(disk.Info{Format: disk.VMDK, Size: h.size(), Unit: h.grainBytes(), Compressed: h.compressed()}, file, m), nil
}

func readDescriptor(file source.Source, h header) error {
	if h.descriptorOffset == 0 {
		return disk.VMDK.Errorf("an extent of a disk of several files: it has no descriptor")
	}
	length, err := descriptorBytes(h)
	if err != nil {
		return err
	}
	text := make([]byte, length)
	if err := file.Read("descriptor", text, bytesOf(h.descriptorOffset)); err != nil {
		return err
	}
	return checkDescriptor(text, false)
}

func descriptorBytes(h header) (int64, error) {
	if h.descriptorSize > maxDescriptor/sector {
		return 0, disk.VMDK.Errorf("a descriptor of %d sectors is longer than the limit of %d", h.descriptorSize, maxDescriptor/sector)
	}
	return int64(h.descriptorSize) * sector, nil
}

// bytesOf returns the offset of a sector in bytes, -1 if that overflows.
func bytesOf(number uint64) int64 {
	if number > uint64(1)<<62/sector {
		return -1
	}
	return int64(number) * sector
}

// readFooter returns the header at the end of a stream, before the marker of its end.
func readFooter(file source.Source, first header) (header, error) {
	b := make([]byte, 3*sector)
	if err := file.Read("footer", b, file.Size-int64(len(b))); err != nil {
		return header{}, err
	}
	if m := decodeMarker(b); m.size != 0 || m.kind != markerFooter {
		return header{}, disk.VMDK.Errorf("truncated: no footer at the end of the file")
	}
	if m := decodeMarker(b[2*sector:]); m.size != 0 || m.kind != markerEndOfStream {
		return header{}, disk.VMDK.Errorf("truncated: no end of stream at the end of the file")
	}
	h, err := decodeHeader(b[sector:])
	if err != nil {
		return h, err
	}
	if err := sameDisk(first, h); err != nil {
		return h, err
	}
	if h.directoryOffset == footerAtEnd {
		return h, disk.VMDK.Errorf("the footer has no offset of the grain directory")
	}
	return h, nil
}

func sameDisk(header, footer header) error {
	if header.capacity != footer.capacity || header.grain != footer.grain || header.compressed() != footer.compressed() {
		return disk.VMDK.Errorf("header and footer differ: capacities of %d and %d sectors, grains of %d and %d", header.capacity, footer.capacity, header.grain, footer.grain)
	}
	return nil
}

func (m *image) readDirectory() error {
	offset := m.directoryOffset
	if err := m.Check("grain directory", bytesOf(offset), m.directoryBytes()); err != nil {
		return err
	}
	b := make([]byte, m.directoryBytes())
	if err := m.Read("grain directory", b, bytesOf(offset)); err != nil {
		return err
	}
	m.directory = make([]uint32, m.header.tables())
	for i := range m.directory {
		m.directory[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	used := slices.Clone(m.directory)
	slices.Sort(used)
	for i := 1; i < len(used); i++ {
		if used[i] != 0 && used[i] == used[i-1] {
			return disk.VMDK.Errorf("two entries of the grain directory name the table at sector %d", used[i])
		}
	}
	return nil
}

// checkTables reads all tables. Grains that lie in each other would make the disk larger than its file.
func (m *image) checkTables() error {
	var stored int64
	for number := int64(0); number < m.grains(); {
		place, err := m.Find(number)
		if err != nil {
			return err
		}
		if place.Stored {
			stored += place.Length
		}
		number += max(place.Run, 1)
	}
	if stored > m.Size {
		return disk.VMDK.Errorf("the grain tables name %d bytes of grains, more than the file has (%d)", stored, m.Size)
	}
	return nil
}

// grainLength is the length of a grain, which the end of the disk may cut.
func (m *image) grainLength(number int64) int64 {
	return min(m.grainBytes(), m.size()-number*m.grainBytes())
}

// Find implements blocks.Map. The length of a compressed grain is the least that it can have.
func (m *image) Find(number int64) (blocks.Place, error) {
	index := number % tableEntries
	offset := m.directory[number/tableEntries]
	if offset == 0 {
		return blocks.Place{Run: tableEntries - index}, nil
	}
	table, err := m.tables.At(int64(offset) * sector)
	if err != nil {
		return blocks.Place{}, err
	}
	entry := binary.LittleEndian.Uint32(table[4*index:])
	if entry == 0 || entry == 1 && m.flags&flagZeroGrains != 0 {
		return blocks.Place{Run: 1}, nil
	}
	place := blocks.Place{Stored: true, Packed: m.compressed(), Offset: int64(entry) * sector, Length: sector}
	if !place.Packed {
		place.Length = m.grainLength(number)
	}
	return place, m.Check("grain", place.Offset, place.Length)
}

// Unpack implements blocks.Map.
func (m *image) Unpack(number int64, place blocks.Place, p []byte) error {
	first := inflate.Buffer(sector)
	defer inflate.Release(first)
	if err := m.Read("grain", *first, place.Offset); err != nil {
		return err
	}
	grain := decodeMarker(*first)
	if err := m.checkMarker(grain, number); err != nil {
		return err
	}
	buffer := inflate.Buffer(int(grain.size))
	defer inflate.Release(buffer)
	n := copy(*buffer, (*first)[markerBytes:])
	if err := m.Read("grain", (*buffer)[n:], place.Offset+markerBytes+int64(n)); err != nil {
		return err
	}
	return m.decode(*buffer, number, p)
}

func (m *image) checkMarker(grain marker, number int64) error {
	if grain.value != uint64(number)*m.grain {
		return disk.VMDK.Errorf("the grain of sector %d is marked as that of sector %d", uint64(number)*m.grain, grain.value)
	}
	return checkGrainSize(m.header, grain)
}

// checkGrainSize bounds the memory for a grain. Data that does not compress grows by a few bytes.
func checkGrainSize(h header, grain marker) error {
	if grain.size == 0 || int64(grain.size) > 2*h.grainBytes() {
		return disk.VMDK.Errorf("the grain of sector %d has %d compressed bytes: 1 to %d are expected", grain.value, grain.size, 2*h.grainBytes())
	}
	return nil
}

func (m *image) decode(compressed []byte, number int64, p []byte) error {
	return decodeGrain(m.header, compressed, uint64(number)*m.grain, p)
}

// decodeGrain fills p. Some writers store the whole last grain, some its part before the end of the disk.
func decodeGrain(h header, compressed []byte, first uint64, p []byte) error {
	n, err := inflate.Zlib(compressed, p, int(h.grainBytes()))
	if err != nil {
		return disk.VMDK.Errorf("the grain of sector %d: %v", first, err)
	}
	if n < len(p) {
		return disk.VMDK.Errorf("the grain of sector %d has %d bytes instead of %d", first, n, len(p))
	}
	return nil
}
