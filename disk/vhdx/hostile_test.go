package vhdx

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/vmstencil/stencil/internal/disktest"
	"github.com/vmstencil/stencil/internal/testfile"
)

// small returns a disk of 6 MiB and an image of it in blocks of 1 MiB.
func small(t testing.TB) (raw, image []byte) {
	path := disktest.Raw(t, 6*disktest.MiB, disktest.Range{Offset: 0, Length: 200 * disktest.KiB}, disktest.Range{Offset: 4 * disktest.MiB, Length: 64 * disktest.KiB})
	return testfile.Read(t, path), testfile.Read(t, disktest.Recorded(t, path, "vhdx", "-o", "block_size=1M"))
}

func u16(value uint16) []byte { return binary.LittleEndian.AppendUint16(nil, value) }
func u32(value uint32) []byte { return binary.LittleEndian.AppendUint32(nil, value) }
func u64(value uint64) []byte { return binary.LittleEndian.AppendUint64(nil, value) }

const (
	header1, header2   = 64 << 10, 128 << 10
	regions1, regions2 = 192 << 10, 256 << 10
)

// sealed changes both copies of a structure and corrects their checksums.
func sealed(first, second, length, at int, value ...byte) func([]byte) []byte {
	return func(b []byte) []byte {
		for _, offset := range []int{first, second} {
			part := b[offset : offset+length]
			copy(part[at:], value)
			copy(part[4:], u32(sum(part)))
		}
		return b
	}
}

func header(at int, value ...byte) func([]byte) []byte {
	return sealed(header1, header2, 4096, at, value...)
}

func regionTable(at int, value ...byte) func([]byte) []byte {
	return sealed(regions1, regions2, 64<<10, at, value...)
}

// find returns the offset of an identifier.
func find(b []byte, id guid) int { return bytes.Index(b, id[:]) }

// regionSet changes the entry of a region.
func regionSet(id guid, at int, value ...byte) func([]byte) []byte {
	return func(b []byte) []byte {
		return regionTable(find(b[regions1:], id)+at, value...)(b)
	}
}

// regionAt returns where a region begins.
func regionAt(b []byte, id guid) int {
	return int(binary.LittleEndian.Uint64(b[regions1+find(b[regions1:], id)+16:]))
}

// itemSet changes the entry of a metadata item.
func itemSet(id guid, at int, value ...byte) func([]byte) []byte {
	return func(b []byte) []byte {
		copy(b[find(b, id)+at:], value)
		return b
	}
}

// valueSet changes a metadata item.
func valueSet(id guid, at int, value ...byte) func([]byte) []byte {
	return func(b []byte) []byte {
		offset := regionAt(b, metadataRegion) + int(binary.LittleEndian.Uint32(b[find(b, id)+16:]))
		copy(b[offset+at:], value)
		return b
	}
}

func blockSet(value uint64) func([]byte) []byte {
	return func(b []byte) []byte {
		copy(b[regionAt(b, tableRegion):], u64(value))
		return b
	}
}

func TestHostileImagesAreRejected(t *testing.T) {
	_, image := small(t)
	unknown := newGUID("00000000-0000-0000-0000-000000000001")
	disktest.CheckHostile(t, Open, image, []disktest.Hostile{
		{Name: "an empty file", Change: disktest.Cut(0), Want: "vhdx: file identifier: 8 bytes at byte 0 are beyond the end of the file, which has 0 bytes"},
		{Name: "another magic number", Change: disktest.Set(0, 'X'), Want: `vhdx: no VHDX image: it begins with "Xhdxfile"`},
		{Name: "no valid header", Change: func(b []byte) []byte { b[header1+100]++; b[header2+100]++; return b }, Want: "vhdx: neither of the two headers has a valid checksum"},
		{Name: "another version", Change: header(66, u16(2)...), Want: "vhdx: version 2 is not supported: 1 is"},
		{Name: "a log that is not empty", Change: header(48, 1), Want: "vhdx: its log is not empty, because it was not closed: attach and detach it in Hyper-V, or run qemu-img check -r all"},
		{Name: "no valid region table", Change: func(b []byte) []byte { b[regions1+9000]++; b[regions2+9000]++; return b }, Want: "vhdx: neither of the two region tables has a valid checksum"},
		{Name: "many regions", Change: regionTable(8, u32(1<<31)...), Want: "vhdx: 2147483648 regions are more than the limit of 2047"},
		{Name: "no regions", Change: regionTable(8, u32(0)...), Want: "vhdx: no region of the block table or of metadata"},
		{Name: "an unknown required region", Change: func(b []byte) []byte {
			at := find(b[regions1:], tableRegion)
			return regionTable(at, unknown[:]...)(regionTable(at+28, 1)(b))
		}, Want: "vhdx: unknown required region 00000000-0000-0000-0000-000000000001"},
		{Name: "a region twice", Change: regionSet(tableRegion, 0, metadataRegion[:]...), Want: "vhdx: two regions 8B7CA206-4790-4B9A-B8FE-575F050F886E"},
		{Name: "a region beyond the file", Change: regionSet(tableRegion, 16, u64(1<<40)...), Want: "vhdx: region 2DC27766-F623-4200-9D64-115E9BFD4A08, 1048576 bytes at byte 1099511627776, is not of whole MiB within the file of 10485760 bytes"},
		{Name: "a region at an offset that overflows", Change: regionSet(tableRegion, 16, u64(1<<63)...), Want: "vhdx: region 2DC27766-F623-4200-9D64-115E9BFD4A08, 1048576 bytes at byte 9223372036854775808, is not of whole MiB within the file of 10485760 bytes"},
		{Name: "a region that ends after the file", Change: regionSet(tableRegion, 24, u32(1<<31)...), Want: "vhdx: region 2DC27766-F623-4200-9D64-115E9BFD4A08: 2147483648 bytes at byte 2097152 are beyond the end of the file, which has 10485760 bytes"},
		{Name: "a region that is no number of MiB", Change: regionSet(tableRegion, 24, u32(4096)...), Want: "vhdx: region 2DC27766-F623-4200-9D64-115E9BFD4A08, 4096 bytes at byte 2097152, is not of whole MiB within the file of 10485760 bytes"},
		{Name: "a region in the header", Change: regionSet(metadataRegion, 16, u64(0)...), Want: "vhdx: region 8B7CA206-4790-4B9A-B8FE-575F050F886E, 1048576 bytes at byte 0, is not of whole MiB within the file of 10485760 bytes"},
		{Name: "metadata that is none", Change: func(b []byte) []byte { b[regionAt(b, metadataRegion)] = 'X'; return b }, Want: "vhdx: no metadata table at byte 3145728"},
		{Name: "many metadata items", Change: func(b []byte) []byte { copy(b[regionAt(b, metadataRegion)+10:], u16(65535)); return b }, Want: "vhdx: 65535 metadata items are more than the limit of 2047"},
		{Name: "no size", Change: func(b []byte) []byte { copy(b[regionAt(b, metadataRegion)+10:], u16(1)); return b }, Want: "vhdx: no metadata item 2FA54224-CD1B-4876-B211-5DBED83BF4B8"},
		{Name: "an unknown required metadata item", Change: itemSet(diskID, 0, unknown[:]...), Want: "vhdx: unknown required metadata item 00000000-0000-0000-0000-000000000001"},
		{Name: "a metadata item twice", Change: itemSet(diskID, 0, physicalSector[:]...), Want: "vhdx: metadata item CDA348C7-445D-4471-9CC9-E9885251C556, 16 bytes at byte 65552 of a region of 1048576, is not 4 bytes after the table"},
		{Name: "the locator of a parent", Change: itemSet(diskID, 0, parentLocator[:]...), Want: "vhdx: a differencing image, whose data is in its parent: merge it first"},
		{Name: "a metadata item beyond its region", Change: itemSet(diskSize, 16, u32(1<<32-1)...), Want: "vhdx: metadata item 2FA54224-CD1B-4876-B211-5DBED83BF4B8, 8 bytes at byte 4294967295 of a region of 1048576, is not 8 bytes after the table"},
		{Name: "a metadata item of another length", Change: itemSet(diskSize, 20, u32(4)...), Want: "vhdx: metadata item 2FA54224-CD1B-4876-B211-5DBED83BF4B8, 4 bytes at byte 65544 of a region of 1048576, is not 8 bytes after the table"},
		{Name: "a differencing image", Change: valueSet(fileParameters, 4, hasParent), Want: "vhdx: a differencing image, whose data is in its parent: merge it first"},
		{Name: "blocks of zero bytes", Change: valueSet(fileParameters, 0, u32(0)...), Want: "vhdx: blocks of 0 bytes are not supported: powers of two from 1048576 to 268435456 are"},
		{Name: "huge blocks", Change: valueSet(fileParameters, 0, u32(1<<31)...), Want: "vhdx: blocks of 2147483648 bytes are not supported: powers of two from 1048576 to 268435456 are"},
		{Name: "sectors of zero bytes", Change: valueSet(logicalSector, 0, u32(0)...), Want: "vhdx: sectors of 0 bytes are not supported: 512 and 4096 are"},
		{Name: "a size that overflows", Change: valueSet(diskSize, 0, u64(1<<63)...), Want: "vhdx: a size of 9223372036854775808 bytes is not a multiple of 512 up to 70368744177664"},
		{Name: "a size that is no number of sectors", Change: valueSet(diskSize, 0, u64(513)...), Want: "vhdx: a size of 513 bytes is not a multiple of 512 up to 70368744177664"},
		{Name: "a size beyond its block table", Change: valueSet(diskSize, 0, u64(1<<40)...), Want: "vhdx: a block table of 1048576 bytes is too small for 1099511627776 bytes in blocks of 1048576: it needs 8390648"},
		{Name: "a bomb of a block table", Change: valueSet(diskSize, 0, u64(64<<40)...), Want: "vhdx: a size of 70368744177664 bytes in blocks of 1048576 needs a block table of 537001976 bytes: the limit is 67108864"},
		{Name: "a block beyond the file", Change: blockSet(1<<40 | statePresent), Want: "vhdx: block 0 at MiB 1048576 is outside the file of 10485760 bytes"},
		{Name: "a block at an offset that overflows", Change: blockSet(1<<63 | statePresent), Want: "vhdx: block 0 at MiB 8796093022208 is outside the file of 10485760 bytes"},
		{Name: "a block that ends after the file", Change: func(b []byte) []byte {
			return blockSet(uint64(len(b)>>20)<<20 | statePresent)(append(b, make([]byte, 1000)...))
		}, Want: "vhdx: block: 1048576 bytes at byte 10485760 are beyond the end of the file, which has 10486760 bytes"},
		{Name: "a block in the header", Change: blockSet(statePresent), Want: "vhdx: block 0 at MiB 0 is outside the file of 10485760 bytes"},
		{Name: "a block that is partly in a parent", Change: blockSet(4<<20 | statePartial), Want: "vhdx: block 0 is partly in a parent: merge the differencing image first"},
		{Name: "a block of an unknown state", Change: blockSet(4<<20 | 5), Want: "vhdx: block 0 has the unknown state 5"},
		{Name: "more blocks than the file has room for", Change: func(b []byte) []byte {
			b = valueSet(diskSize, 0, u64(1<<30)...)(b)
			for i := range 1024 {
				copy(b[regionAt(b, tableRegion)+8*i:], u64(4<<20|statePresent))
			}
			return b
		}, Want: "vhdx: the block table names 1073741824 bytes of blocks, more than the file has (10485760)"},
	})
}

func TestTruncatedImagesAreRejected(t *testing.T) {
	raw, image := small(t)
	// QEMU allocates whole blocks, the last of which holds data at its start.
	disktest.CheckTruncated(t, Open, image, raw, true)
}

// FuzzVHDX changes a valid image, with or without correct checksums.
func FuzzVHDX(f *testing.F) {
	_, image := small(f)
	f.Add(true, []byte{})
	f.Add(true, []byte{0, 0, 3, 0, 4, 1, 2, 3, 4})
	f.Add(false, append(u32(header1+48), 1, 1))
	for _, id := range []guid{fileParameters, diskSize, logicalSector} {
		f.Add(true, append(u32(uint32(find(image, id)+16)), 4, 1, 2, 3, 4))
		offset := regionAt(image, metadataRegion) + int(binary.LittleEndian.Uint32(image[find(image, id)+16:]))
		f.Add(true, append(u32(uint32(offset)), 4, 0, 0, 0, 1))
	}
	f.Add(true, append(u32(uint32(regionAt(image, tableRegion))), 8, 6, 0, 0x50, 0, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, seal bool, changes []byte) {
		p := disktest.NewPatch(image, changes)
		if seal {
			for offset, length := range map[int64]int{header1: 4096, header2: 4096, regions1: 64 << 10, regions2: 64 << 10} {
				b := make([]byte, length)
				_, _ = p.ReadAt(b, offset)
				p.Set(offset+4, u32(sum(b)))
			}
		}
		disktest.Fuzz(t, Open, p, p.Size())
	})
}
