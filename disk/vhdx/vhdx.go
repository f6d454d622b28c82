// Package vhdx reads VHDX images, fixed and dynamic, of Microsoft's [MS-VHDX]. Differencing images are rejected: no name of a parent is ever
// opened. An image whose log has entries is rejected, because its last writer has not closed it.
package vhdx

import (
	"encoding/binary"
	"io"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/internal/blocks"
	"github.com/vmstencil/stencil/disk/internal/source"
)

const (
	kiB = int64(1) << 10
	miB = int64(1) << 20
	// tablePage is the part of the block table that is read at once, a divisor of the length of every region.
	tablePage = 64 * kiB
	// tablesMemory is the number of bytes of the block table that are cached.
	tablesMemory = 4 << 20
	// maxTable is the largest block table in bytes: 64 TiB in blocks of 8 MiB.
	maxTable = 64 * miB
	minBlock = miB
	maxBlock = 256 * miB
)

// States of a block.
const (
	stateNotPresent = 0
	stateUndefined  = 1
	stateZero       = 2
	stateUnmapped   = 3
	statePresent    = 6
	statePartial    = 7
)

// image is the map of a VHDX file.
type image struct {
	source.Source
	metadata
	// table is the offset of the block table in the file.
	table int64
	pages *source.Tables
}

// Open returns the disk in a VHDX file of a size in bytes. It reads all tables of the file first: errors in them are found before any data is
// read.
func Open(r io.ReaderAt, size int64) (disk.Image, error) {
	file := source.Source{ReaderAt: r, Size: size, Format: disk.VHDX}
	if err := checkHeaders(file); err != nil {
		return nil, err
	}
	regions, err := readRegions(file)
	if err != nil {
		return nil, err
	}
	m := &image{Source: file, table: regions.table.offset}
	if m.metadata, err = readMetadata(file, regions.metadata); err != nil {
		return nil, err
	}
	if err := m.checkTable(regions.table); err != nil {
		return nil, err
	}
	return blocks.New(disk.Info{Format: disk.VHDX, Size: m.size, Unit: m.block}, file, m), nil
}

// count is the number of blocks of the disk; the last may be a part.
func (m *image) count() int64 { return (m.size + m.block - 1) / m.block }

// ratio is the number of blocks between two entries of the table for sector bitmaps, which only differencing images use.
func (m *image) ratio() int64 { return (1 << 23) * m.sector / m.block }

// checkTable checks the places of all blocks. Blocks that lie in each other would make the disk larger than its file.
func (m *image) checkTable(r region) error {
	entries := m.count()
	if entries > 0 {
		entries += (entries - 1) / m.ratio()
	}
	needed := entries * 8
	switch {
	case needed > maxTable:
		return disk.VHDX.Errorf("a size of %d bytes in blocks of %d needs a block table of %d bytes: the limit is %d", m.size, m.block, needed, maxTable)
	case needed > r.length:
		return disk.VHDX.Errorf("a block table of %d bytes is too small for %d bytes in blocks of %d: it needs %d", r.length, m.size, m.block, needed)
	}
	m.pages = source.NewTables(m.Source, "block table", int(tablePage), tablesMemory)
	var stored int64
	for number := range m.count() {
		place, err := m.Find(number)
		if err != nil {
			return err
		}
		if place.Stored {
			stored += place.Length
		}
	}
	if stored > m.Size {
		return disk.VHDX.Errorf("the block table names %d bytes of blocks, more than the file has (%d)", stored, m.Size)
	}
	return nil
}

// Find implements blocks.Map.
func (m *image) Find(number int64) (blocks.Place, error) {
	at := (number + number/m.ratio()) * 8
	page, err := m.pages.At(m.table + at/tablePage*tablePage)
	if err != nil {
		return blocks.Place{}, err
	}
	entry := binary.LittleEndian.Uint64(page[at%tablePage:])
	switch state := entry & 7; state {
	case stateNotPresent, stateUndefined, stateZero, stateUnmapped:
		return blocks.Place{Run: 1}, nil
	case statePresent:
	case statePartial:
		return blocks.Place{}, disk.VHDX.Errorf("block %d is partly in a parent: merge the differencing image first", number)
	default:
		return blocks.Place{}, disk.VHDX.Errorf("block %d has the unknown state %d", number, state)
	}
	// The upper 44 bits are a number of MiB; what is beyond the largest file is no place.
	offset := entry >> 20
	if offset == 0 || offset > uint64(m.Size/miB) {
		return blocks.Place{}, disk.VHDX.Errorf("block %d at MiB %d is outside the file of %d bytes", number, offset, m.Size)
	}
	place := blocks.Place{Stored: true, Offset: int64(offset) * miB, Length: min(m.block, m.size-number*m.block)}
	return place, m.Check("block", place.Offset, place.Length)
}

// Unpack implements blocks.Map. No block is compressed.
func (m *image) Unpack(int64, blocks.Place, []byte) error { return nil }
