package vhd

import (
	"encoding/binary"
	"testing"

	"github.com/vmstencil/stencil/internal/disktest"
	"github.com/vmstencil/stencil/internal/testfile"
)

// small returns a disk of 6 MiB and an image of it, whose header is at byte 512 and whose block table is at byte 1536.
func small(t testing.TB, options string) (raw, image []byte) {
	path := disktest.Raw(t, 6*disktest.MiB, disktest.Range{Offset: 0, Length: 200 * disktest.KiB}, disktest.Range{Offset: 4 * disktest.MiB, Length: 64 * disktest.KiB})
	return testfile.Read(t, path), testfile.Read(t, disktest.Recorded(t, path, "vpc", "-o", options+",force_size=on"))
}

const (
	dynamicOptions = "subformat=dynamic"
	fixedOptions   = "subformat=fixed"
	headerAt       = 512
	tableAt        = 1536
)

func u32(value uint32) []byte { return binary.BigEndian.AppendUint32(nil, value) }
func u64(value uint64) []byte { return binary.BigEndian.AppendUint64(nil, value) }

// seal corrects a checksum.
func seal(b []byte, at int) {
	sum := uint32(0)
	for i, c := range b {
		if i < at || i >= at+4 {
			sum += uint32(c)
		}
	}
	copy(b[at:], u32(^sum))
}

// footerSet changes the footer, and its copy if there is one.
func footerSet(at int, value ...byte) func([]byte) []byte {
	return func(b []byte) []byte {
		end := b[len(b)-footerBytes:]
		copy(end[at:], value)
		seal(end, 64)
		if string(b[:8]) == footerCookie {
			copy(b, end)
		}
		return b
	}
}

func headerSet(at int, value ...byte) func([]byte) []byte {
	return func(b []byte) []byte {
		header := b[headerAt : headerAt+headerBytes]
		copy(header[at:], value)
		seal(header, 36)
		return b
	}
}

func TestHostileDynamicImagesAreRejected(t *testing.T) {
	_, image := small(t, dynamicOptions)
	disktest.CheckHostile(t, Open, image, []disktest.Hostile{
		{Name: "an empty file", Change: disktest.Cut(0), Want: "vhd: truncated: no footer at the end of the file"},
		{Name: "no footer", Change: disktest.Cut(-1), Want: "vhd: truncated: no footer at the end of the file"},
		{Name: "a footer of another version", Change: footerSet(12, u32(2)...), Want: "vhd: version 0x2 of the footer is not supported: 0x10000 is"},
		{Name: "a footer with a wrong checksum", Change: func(b []byte) []byte {
			// Without its time and its random identifier.
			b = footerSet(68, make([]byte, 16)...)(footerSet(24, 0, 0, 0, 0)(b))
			b[len(b)-400]++
			return b
		}, Want: "vhd: the checksum of the footer is fffff5f3 instead of fffff5f2"},
		{Name: "a copy of the footer that differs", Change: disktest.Set(400, 1), Want: "vhd: the footer differs from its copy at the start of the file"},
		{Name: "a differencing image", Change: footerSet(60, u32(typeDiff)...), Want: "vhd: a differencing image, whose data is in its parent: merge it first"},
		{Name: "an unknown type", Change: footerSet(60, u32(9)...), Want: "vhd: type 9 of image is not supported: 2 (fixed) and 3 (dynamic) are"},
		{Name: "a size that overflows", Change: footerSet(48, u64(1<<63)...), Want: "vhd: a size of 9223372036854775808 bytes is not a multiple of 512 up to 70368744177664"},
		{Name: "a size that is no number of sectors", Change: footerSet(48, u64(513)...), Want: "vhd: a size of 513 bytes is not a multiple of 512 up to 70368744177664"},
		{Name: "a size beyond its block table", Change: footerSet(48, u64(1<<40)...), Want: "vhd: a block table of 3 entries is too small for 1099511627776 bytes: it needs 524288"},
		{Name: "a header beyond the file", Change: footerSet(16, u64(1<<63)...), Want: "vhd: header: 1024 bytes at byte 9223372036854775808 are beyond the end of the file, which has 4197888 bytes"},
		{Name: "a header at the end of the file", Change: func(b []byte) []byte { return footerSet(16, u64(uint64(len(b)-100))...)(b) }, Want: "vhd: header: 1024 bytes at byte 4197788 are beyond the end of the file, which has 4197888 bytes"},
		{Name: "another header", Change: headerSet(0, 'X'), Want: "vhd: no header of a dynamic image at byte 512"},
		{Name: "a header with a wrong checksum", Change: disktest.Set(headerAt+200, 1), Want: "vhd: the checksum of the header is fffff474 instead of fffff473"},
		{Name: "a header of another version", Change: headerSet(24, u32(2)...), Want: "vhd: version 0x2 of the header is not supported: 0x10000 is"},
		{Name: "blocks of zero bytes", Change: headerSet(32, u32(0)...), Want: "vhd: blocks of 0 bytes are not supported: powers of two from 4096 to 268435456 are"},
		{Name: "blocks that are no power of two", Change: headerSet(32, u32(3<<20)...), Want: "vhd: blocks of 3145728 bytes are not supported: powers of two from 4096 to 268435456 are"},
		{Name: "huge blocks", Change: headerSet(32, u32(1<<31)...), Want: "vhd: blocks of 2147483648 bytes are not supported: powers of two from 4096 to 268435456 are"},
		{Name: "a bomb of a block table", Change: func(b []byte) []byte {
			return headerSet(28, u32(1<<32-1)...)(footerSet(48, u64(60<<40)...)(b))
		}, Want: "vhd: a size of 65970697666560 bytes in blocks of 2097152 needs a block table of 125829120 bytes: the limit is 8388608"},
		{Name: "a block table that is not in the file", Change: func(b []byte) []byte {
			return headerSet(28, u32(1<<32-1)...)(footerSet(48, u64(4<<40)...)(b))
		}, Want: "vhd: block table: 8388608 bytes at byte 1536 are beyond the end of the file, which has 4197888 bytes"},
		{Name: "a block table beyond the file", Change: headerSet(16, u64(1<<63)...), Want: "vhd: block table: 12 bytes at byte 9223372036854775808 are beyond the end of the file, which has 4197888 bytes"},
		{Name: "a block beyond the file", Change: disktest.Set(tableAt, u32(1<<31)...), Want: "vhd: block: 2097152 bytes at byte 1099511628288 are beyond the end of the file, which has 4197888 bytes"},
		{Name: "a block in another one", Change: func(b []byte) []byte {
			copy(b[tableAt+4:], u32(binary.BigEndian.Uint32(b[tableAt:])+1))
			return b
		}, Want: "vhd: the blocks at sectors 4 and 5 overlap"},
	})
}

func TestHostileFixedImagesAreRejected(t *testing.T) {
	_, image := small(t, fixedOptions)
	disktest.CheckHostile(t, Open, image, []disktest.Hostile{
		{Name: "a size beyond the file", Change: footerSet(48, u64(6<<20+512)...), Want: "vhd: data: 6292480 bytes at byte 0 are beyond the end of the file, which has 6291968 bytes"},
		{Name: "a size that overflows", Change: footerSet(48, u64(1<<63)...), Want: "vhd: a size of 9223372036854775808 bytes is not a multiple of 512 up to 70368744177664"},
	})
}

func TestTruncatedImagesAreRejected(t *testing.T) {
	for _, options := range []string{dynamicOptions, fixedOptions} {
		raw, image := small(t, options)
		disktest.CheckTruncated(t, Open, image, raw, false)
	}
}

// FuzzVHD changes valid images, with or without correct checksums.
func FuzzVHD(f *testing.F) {
	_, dynamic := small(f, dynamicOptions)
	_, fixed := small(f, fixedOptions)
	f.Add(true, true, []byte{})
	f.Add(true, false, []byte{0, 6, 0, 0, 4, 0, 0, 0, 1})
	f.Add(false, true, append(u64(48), 1, 2, 3))
	f.Fuzz(func(t *testing.T, isDynamic, sealed bool, changes []byte) {
		image := fixed
		if isDynamic {
			image = dynamic
		}
		p := disktest.NewPatch(image, changes)
		if sealed {
			reseal(p)
		}
		disktest.Fuzz(t, Open, p, p.Size())
	})
}

// reseal corrects the checksums of a changed image, and the copy of the footer.
func reseal(p *disktest.Patch) {
	b := make([]byte, footerBytes)
	_, _ = p.ReadAt(b, p.Size()-footerBytes)
	seal(b, 64)
	p.Set(p.Size()-footerBytes, b)
	if binary.BigEndian.Uint32(b[60:]) == typeDynamic {
		p.Set(0, b)
		header := make([]byte, headerBytes)
		_, _ = p.ReadAt(header, headerAt)
		seal(header, 36)
		p.Set(headerAt, header)
	}
}
