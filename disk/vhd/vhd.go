// Package vhd reads VHD images, fixed and dynamic, of Microsoft's "Virtual Hard Disk Image Format Specification" (2006). Differencing images
// are rejected: no name of a parent is ever opened.
//
// The size is the current size of the footer, never the geometry, of which some writers make a slightly smaller disk.
package vhd

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"slices"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/internal/blocks"
	"github.com/vmstencil/stencil/disk/internal/source"
)

const (
	sector       = 512
	footerBytes  = 512
	headerBytes  = 1024
	typeFixed    = 2
	typeDynamic  = 3
	typeDiff     = 4
	absent       = ^uint32(0)
	minBlock     = 4 << 10
	maxBlock     = 256 << 20
	maxTable     = 8 << 20
	footerCookie = "conectix"
	headerCookie = "cxsparse"
	// version 1.0 of the footer and of the header of dynamic images.
	version = 0x00010000
)

type footer struct {
	size       uint64
	dataOffset uint64
	kind       uint32
}

// Open returns the disk in a VHD file of a size in bytes. If r is an *os.File, holes of a fixed image are not read; NextData then changes the
// file's offset.
func Open(r io.ReaderAt, size int64) (disk.Image, error) {
	file := source.Source{ReaderAt: r, Size: size, Format: disk.VHD}
	if size < footerBytes {
		return nil, errNoFooter()
	}
	end := make([]byte, footerBytes)
	if err := file.Read("footer", end, size-footerBytes); err != nil {
		return nil, err
	}
	f, err := decodeFooter(end)
	if err != nil {
		return nil, err
	}
	switch f.kind {
	case typeFixed:
		return openFixed(file, f)
	case typeDynamic:
	case typeDiff:
		return nil, disk.VHD.Errorf("a differencing image, whose data is in its parent: merge it first")
	default:
		return nil, disk.VHD.Errorf("type %d of image is not supported: %d (fixed) and %d (dynamic) are", f.kind, typeFixed, typeDynamic)
	}
	start := make([]byte, footerBytes)
	if err := file.Read("copy of the footer", start, 0); err != nil {
		return nil, err
	}
	if !bytes.Equal(start, end) {
		return nil, disk.VHD.Errorf("the footer differs from its copy at the start of the file")
	}
	return openDynamic(file, f)
}

func errNoFooter() error { return disk.VHD.Errorf("truncated: no footer at the end of the file") }

func decodeFooter(b []byte) (footer, error) {
	be := binary.BigEndian
	if string(b[:8]) != footerCookie {
		return footer{}, errNoFooter()
	}
	if err := check("footer", b, 64); err != nil {
		return footer{}, err
	}
	f := footer{dataOffset: be.Uint64(b[16:]), size: be.Uint64(b[48:]), kind: be.Uint32(b[60:])}
	if v := be.Uint32(b[12:]); v != version {
		return f, disk.VHD.Errorf("version %#x of the footer is not supported: %#x is", v, version)
	}
	if f.size > uint64(disk.MaxSize) || f.size%sector != 0 {
		return f, disk.VHD.Errorf("a size of %d bytes is not a multiple of %d up to %d", f.size, sector, disk.MaxSize)
	}
	return f, nil
}

// check compares the checksum at an offset: the complement of the sum of all other bytes.
func check(what string, b []byte, at int) error {
	sum := uint32(0)
	for i, c := range b {
		if i < at || i >= at+4 {
			sum += uint32(c)
		}
	}
	if stored := binary.BigEndian.Uint32(b[at:]); stored != ^sum {
		return disk.VHD.Errorf("the checksum of the %s is %08x instead of %08x", what, stored, ^sum)
	}
	return nil
}

// fixed is a raw image before a footer.
type fixed struct{ disk.Image }

func (f fixed) Info() disk.Info {
	info := f.Image.Info()
	info.Format = disk.VHD
	return info
}

func openFixed(file source.Source, f footer) (disk.Image, error) {
	if err := file.Check("data", 0, int64(f.size)+footerBytes); err != nil {
		return nil, err
	}
	r := file.ReaderAt
	if _, ok := r.(*os.File); !ok {
		r = file
	}
	image, err := disk.OpenRaw(r, int64(f.size))
	return fixed{image}, err
}

// dynamic is the map of a dynamic image.
type dynamic struct {
	source.Source
	size  int64
	block int64
	// bitmap is the number of bytes before the data of a block, which hold a bit for each sector. As in QEMU they are not read: the sectors
	// of a block that were never written are zero.
	bitmap int64
	table  []byte
}

func openDynamic(file source.Source, f footer) (disk.Image, error) {
	if f.dataOffset > uint64(file.Size) {
		return nil, disk.VHD.Errorf("header: %d bytes at byte %d are beyond the end of the file, which has %d bytes", headerBytes, f.dataOffset, file.Size)
	}
	b := make([]byte, headerBytes)
	if err := file.Read("header", b, int64(f.dataOffset)); err != nil {
		return nil, err
	}
	be := binary.BigEndian
	if string(b[:8]) != headerCookie {
		return nil, disk.VHD.Errorf("no header of a dynamic image at byte %d", f.dataOffset)
	}
	if err := check("header", b, 36); err != nil {
		return nil, err
	}
	offset, entries := be.Uint64(b[16:]), int64(be.Uint32(b[28:]))
	d := &dynamic{Source: file, size: int64(f.size), block: int64(be.Uint32(b[32:]))}
	if v := be.Uint32(b[24:]); v != version {
		return nil, disk.VHD.Errorf("version %#x of the header is not supported: %#x is", v, version)
	}
	if d.block < minBlock || d.block > maxBlock || d.block&(d.block-1) != 0 {
		return nil, disk.VHD.Errorf("blocks of %d bytes are not supported: powers of two from %d to %d are", d.block, minBlock, maxBlock)
	}
	d.bitmap = (d.block/sector/8 + sector - 1) / sector * sector
	needed := (d.size + d.block - 1) / d.block
	if entries < needed {
		return nil, disk.VHD.Errorf("a block table of %d entries is too small for %d bytes: it needs %d", entries, d.size, needed)
	}
	if needed*4 > maxTable {
		return nil, disk.VHD.Errorf("a size of %d bytes in blocks of %d needs a block table of %d bytes: the limit is %d", d.size, d.block, needed*4, maxTable)
	}
	if offset > uint64(file.Size) {
		return nil, disk.VHD.Errorf("block table: %d bytes at byte %d are beyond the end of the file, which has %d bytes", needed*4, offset, file.Size)
	}
	if err := file.Check("block table", int64(offset), needed*4); err != nil {
		return nil, err
	}
	d.table = make([]byte, needed*4)
	if err := file.Read("block table", d.table, int64(offset)); err != nil {
		return nil, err
	}
	if err := d.checkTable(); err != nil {
		return nil, err
	}
	return blocks.New(disk.Info{Format: disk.VHD, Size: d.size, Unit: d.block}, file, d), nil
}

func (d *dynamic) entry(number int64) uint32 { return binary.BigEndian.Uint32(d.table[4*number:]) }

// checkTable checks all places. Blocks that lie in each other would make the disk larger than its file.
func (d *dynamic) checkTable() error {
	var used []uint32
	for number := range int64(len(d.table) / 4) {
		if _, err := d.Find(number); err != nil {
			return err
		}
		if entry := d.entry(number); entry != absent {
			used = append(used, entry)
		}
	}
	slices.Sort(used)
	for i := 1; i < len(used); i++ {
		if int64(used[i]-used[i-1])*sector < d.bitmap+d.block {
			return disk.VHD.Errorf("the blocks at sectors %d and %d overlap", used[i-1], used[i])
		}
	}
	return nil
}

// Find implements blocks.Map.
func (d *dynamic) Find(number int64) (blocks.Place, error) {
	entry := d.entry(number)
	if entry == absent {
		return blocks.Place{Run: 1}, nil
	}
	place := blocks.Place{Stored: true, Offset: int64(entry)*sector + d.bitmap, Length: min(d.block, d.size-number*d.block)}
	return place, d.Check("block", place.Offset, place.Length)
}

// Unpack implements blocks.Map. No block is compressed.
func (d *dynamic) Unpack(int64, blocks.Place, []byte) error { return nil }
