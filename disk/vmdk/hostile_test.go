package vmdk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/internal/disktest"
	"github.com/vmstencil/stencil/internal/testfile"
)

// small returns a disk of 4 MiB and its stream. Its first grain is at sector 128.
func small(t testing.TB) (raw, stream []byte) {
	path := disktest.Raw(t, 4*disktest.MiB, disktest.Range{Offset: 0, Length: 100 * disktest.KiB}, disktest.Range{Offset: 2 * disktest.MiB, Length: 8192})
	return testfile.Read(t, path), testfile.Read(t, encoded(t, rawImage(t, path), EncodeOptions{}))
}

// both changes header and footer.
func both(at int, value ...byte) func([]byte) []byte {
	return func(b []byte) []byte {
		copy(b[at:], value)
		copy(b[len(b)-2*sector+at:], value)
		return b
	}
}

// tableOf returns the offset of the grain table.
func tableOf(b []byte) int {
	directory := int(binary.LittleEndian.Uint64(b[len(b)-2*sector+56:])) * sector
	return int(binary.LittleEndian.Uint32(b[directory:])) * sector
}

func u32(value uint32) []byte { return binary.LittleEndian.AppendUint32(nil, value) }
func u64(value uint64) []byte { return binary.LittleEndian.AppendUint64(nil, value) }

// described replaces the descriptor.
func described(text string) func([]byte) []byte {
	return func(b []byte) []byte {
		clear(b[sector : 21*sector])
		copy(b[sector:], "# Disk DescriptorFile\n"+text)
		return b
	}
}

func grainZero(data []byte) func([]byte) []byte {
	return func(b []byte) []byte {
		encoder := newGrainEncoder(Fast)
		out, err := encoder.append(nil, 0, data)
		if err != nil {
			panic(err)
		}
		copy(b[128*sector:], out)
		return b
	}
}

func TestHostileImagesAreRejected(t *testing.T) {
	_, stream := small(t)
	disktest.CheckHostile(t, Open, stream, []disktest.Hostile{
		{Name: "an empty file", Change: disktest.Cut(0), Want: "vmdk: truncated: the header is 0 bytes long, not 512"},
		{Name: "another magic number", Change: disktest.Set(0, 'X'), Want: "vmdk: no sparse extent: the magic number is 564d4458, not 564d444b"},
		{Name: "a sparse extent of ESX", Change: disktest.Set(0, []byte("COWD")...), Want: "vmdk: a COWD sparse extent of ESX: convert it to streamOptimized with VMware's tools"},
		{Name: "an SEsparse extent", Change: disktest.Set(0, 0xbe, 0xba, 0xfe, 0xca), Want: "vmdk: an SEsparse snapshot extent: consolidate the snapshots and export the disk"},
		{Name: "an unknown version", Change: disktest.Set(4, 4), Want: "vmdk: version 4 of the header is not supported: 1 to 3 are"},
		{Name: "newlines changed by a transfer", Change: disktest.Set(73, []byte("\r\n \n")...), Want: `vmdk: damaged by a transfer as text: its newline bytes are "\r\n \n"`},
		{Name: "unknown flags", Change: disktest.Set(8, 0x81), Want: "vmdk: unknown flags 0x80 in the header"},
		{Name: "markers without compression", Change: both(8, 1, 0, 2, 0), Want: "vmdk: grains with markers that are not compressed"},
		{Name: "compression without markers", Change: both(8, 1, 0, 1, 0), Want: "vmdk: compressed grains without markers"},
		{Name: "another compression", Change: disktest.Set(77, 2), Want: "vmdk: compression algorithm 2 is not supported: 1 (deflate) is"},
		{Name: "a capacity that overflows", Change: both(12, u64(1<<63)...), Want: "vmdk: a capacity of 9223372036854775808 sectors is more than the limit of 137438953472"},
		{Name: "a capacity beyond the limit", Change: both(12, u64(1<<37+1)...), Want: "vmdk: a capacity of 137438953473 sectors is more than the limit of 137438953472"},
		{Name: "a directory that is not in the file", Change: both(12, u64(1<<37)...), Want: "vmdk: grain directory: 8388608 bytes at byte 131072 are beyond the end of the file, which has 133120 bytes"},
		{Name: "a directory beyond the limit", Change: func(b []byte) []byte {
			return both(20, u64(8)...)(both(12, u64(1<<37)...)(b))
		}, Want: "vmdk: a capacity of 137438953472 sectors in grains of 8 needs a grain directory of 134217728 bytes: the limit is 8388608"},
		{Name: "grains that are no power of two", Change: both(20, 127), Want: "vmdk: a grain of 127 sectors is not a power of two from 8 to 4096"},
		{Name: "grains of zero sectors", Change: both(20, 0), Want: "vmdk: a grain of 0 sectors is not a power of two from 8 to 4096"},
		{Name: "huge grains", Change: both(20, u64(1<<40)...), Want: "vmdk: a grain of 1099511627776 sectors is not a power of two from 8 to 4096"},
		{Name: "large grain tables", Change: both(44, u32(1<<30)...), Want: "vmdk: grain tables of 1073741824 entries are not supported: 512 are"},
		{Name: "no descriptor", Change: disktest.Set(28, u64(0)...), Want: "vmdk: an extent of a disk of several files: it has no descriptor"},
		{Name: "a huge descriptor", Change: disktest.Set(36, u64(1<<40)...), Want: "vmdk: a descriptor of 1099511627776 sectors is longer than the limit of 128"},
		{Name: "a descriptor beyond the file", Change: disktest.Set(28, u64(1<<60)...), Want: "vmdk: descriptor: its place in the file overflows"},
		{Name: "a descriptor whose end overflows", Change: disktest.Set(28, u64(^uint64(10))...), Want: "vmdk: descriptor: its place in the file overflows"},
		{Name: "a descriptor with a host file", Change: described("RW 8192 FLAT \"/etc/passwd\" 0\n"), Want: `vmdk: the disk is in another file (extent "RW 8192 FLAT \"/etc/passwd\" 0"): only disks in one file are read; convert it to streamOptimized`},
		{Name: "a descriptor with a device", Change: described("RW 8192 VMFSRDM \"/dev/sda\"\n"), Want: `vmdk: the disk is in another file (extent "RW 8192 VMFSRDM \"/dev/sda\""): only disks in one file are read; convert it to streamOptimized`},
		{Name: "a descriptor with a second extent", Change: described("RW 8192 SPARSE \"a.vmdk\"\nRW 8192 SPARSE \"/etc/passwd\"\n"), Want: `vmdk: the disk is in several files (extent "RW 8192 SPARSE \"/etc/passwd\""): only disks in one file are read; convert it to streamOptimized`},
		{Name: "a descriptor with a parent", Change: described("parentCID=12345678\n"), Want: `vmdk: a snapshot of another disk (parentCID "12345678"): consolidate the snapshots and export the disk`},
		{Name: "a descriptor with the file of a parent", Change: described("parentFileNameHint = \"/etc/passwd\"\n"), Want: `vmdk: a snapshot of another disk (parent "/etc/passwd"): consolidate the snapshots and export the disk`},
		{Name: "a file of text with a host file", Change: func([]byte) []byte {
			return []byte("# Disk DescriptorFile\nversion=1\ncreateType=\"monolithicFlat\"\nRW 8 FLAT \"/etc/passwd\" 0\n")
		}, Want: `vmdk: the disk is in another file (extent "RW 8 FLAT \"/etc/passwd\" 0"): only disks in one file are read; convert it to streamOptimized`},
		{Name: "a file of text with a long line", Change: func([]byte) []byte {
			return []byte("# Disk DescriptorFile\nRW 8 SPARSE \"" + strings.Repeat("a", 1000) + "\"\n")
		}, Want: `vmdk: the disk is in another file (extent "RW 8 SPARSE \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"…): only disks in one file are read; convert it to streamOptimized`},
		{Name: "a file of text without an extent", Change: func([]byte) []byte { return []byte("# Disk DescriptorFile\nversion=1\n") }, Want: "vmdk: a descriptor without a disk"},
		{Name: "no end of stream", Change: disktest.Cut(-sector), Want: "vmdk: truncated: no footer at the end of the file"},
		{Name: "no end of stream but another sector", Change: func(b []byte) []byte { b[len(b)-sector+12] = 1; return b }, Want: "vmdk: truncated: no end of stream at the end of the file"},
		{Name: "a footer of another disk", Change: func(b []byte) []byte { b[len(b)-2*sector+12] = 1; return b }, Want: "vmdk: header and footer differ: capacities of 8192 and 8193 sectors, grains of 128 and 128"},
		{Name: "a footer without the directory", Change: func(b []byte) []byte {
			copy(b[len(b)-2*sector+56:], u64(footerAtEnd))
			return b
		}, Want: "vmdk: the footer has no offset of the grain directory"},
		{Name: "a directory at an offset that overflows", Change: func(b []byte) []byte {
			copy(b[len(b)-2*sector+56:], u64(1<<62))
			return b
		}, Want: "vmdk: grain directory: its place in the file overflows"},
		{Name: "a table beyond the file", Change: func(b []byte) []byte {
			copy(b[len(b)-4*sector:], u32(1<<31))
			return b
		}, Want: "vmdk: grain table: 2048 bytes at byte 1099511627776 are beyond the end of the file, which has 133120 bytes"},
		{Name: "a grain beyond the file", Change: func(b []byte) []byte { copy(b[tableOf(b):], u32(1<<31)); return b }, Want: "vmdk: grain: 512 bytes at byte 1099511627776 are beyond the end of the file, which has 133120 bytes"},
		{Name: "a grain of another place", Change: func(b []byte) []byte { copy(b[tableOf(b)+4:], u32(128)); return b }, Want: "reading 131072 bytes at byte 0 of the disk: vmdk: the grain of sector 128 is marked as that of sector 0"},
		{Name: "more grains than the file has room for", Change: func(b []byte) []byte {
			both(12, u64(tableEntries*grainSectors)...)(b)
			for i := range tableEntries {
				copy(b[tableOf(b)+4*i:], u32(128))
			}
			return b
		}, Want: "vmdk: the grain tables name 262144 bytes of grains, more than the file has (133120)"},
		{Name: "a grain of no bytes", Change: disktest.Set(128*sector+8, u32(0)...), Want: "reading 131072 bytes at byte 0 of the disk: vmdk: the grain of sector 0 has 0 compressed bytes: 1 to 131072 are expected"},
		{Name: "a grain of more bytes than two grains", Change: disktest.Set(128*sector+8, u32(1<<31)...), Want: "reading 131072 bytes at byte 0 of the disk: vmdk: the grain of sector 0 has 2147483648 compressed bytes: 1 to 131072 are expected"},
		{Name: "a grain that ends after the file", Change: disktest.Set(128*sector+8, u32(2*grainBytes)...), Want: "reading 131072 bytes at byte 0 of the disk: vmdk: grain: 130572 bytes at byte 66048 are beyond the end of the file, which has 133120 bytes"},
		{Name: "a grain that is not compressed", Change: disktest.Set(128*sector+12, 0, 0), Want: "reading 131072 bytes at byte 0 of the disk: vmdk: the grain of sector 0: the compressed data is corrupt"},
		{Name: "a grain with other bytes", Change: disktest.Set(128*sector+600, 1, 2, 3, 4, 5, 6, 7, 8), Want: "reading 131072 bytes at byte 0 of the disk: vmdk: the grain of sector 0: the data is longer than its unit"},
		{Name: "a grain that is a bomb", Change: grainZero(make([]byte, 10*disktest.MiB)), Want: "reading 131072 bytes at byte 0 of the disk: vmdk: the grain of sector 0: the data is longer than its unit"},
		{Name: "a grain that is short", Change: grainZero(make([]byte, 100)), Want: "reading 131072 bytes at byte 0 of the disk: vmdk: the grain of sector 0 has 100 bytes instead of 65536"},
	})
}

func TestATwiceUsedTableIsRejected(t *testing.T) {
	path := disktest.Raw(t, 40*disktest.MiB, disktest.Range{Offset: 0, Length: disktest.MiB}, disktest.Range{Offset: 39 * disktest.MiB, Length: disktest.MiB})
	stream := testfile.Read(t, encoded(t, rawImage(t, path), EncodeOptions{}))
	disktest.CheckHostile(t, Open, stream, []disktest.Hostile{
		{Name: "twice in the directory", Change: func(b []byte) []byte {
			copy(b[len(b)-4*sector+4:], b[len(b)-4*sector:][:4])
			return b
		}, Want: "vmdk: two entries of the grain directory name the table at sector 1047"},
	})
}

func TestOverlappingGrainsOfASparseExtentAreRejected(t *testing.T) {
	path := disktest.Raw(t, 4*disktest.MiB, disktest.Range{Offset: 0, Length: 100 * disktest.KiB})
	sparse := testfile.Read(t, disktest.Recorded(t, path, "vmdk", "-o", "subformat=monolithicSparse"))
	disktest.CheckHostile(t, Open, sparse, []disktest.Hostile{
		{Name: "every grain is the first", Change: func(b []byte) []byte {
			directory := int(binary.LittleEndian.Uint64(b[56:])) * sector
			table := int(binary.LittleEndian.Uint32(b[directory:])) * sector
			for i := range 64 {
				copy(b[table+4*i:], b[table:][:4])
			}
			return b
		}, Want: "vmdk: the grain tables name 4194304 bytes of grains, more than the file has (196608)"},
	})
}

func TestTruncatedImagesAreRejected(t *testing.T) {
	raw, stream := small(t)
	disktest.CheckTruncated(t, Open, stream, raw, false)
	disktest.CheckTruncated(t, func(r io.ReaderAt, size int64) (disk.Image, error) { return nil, readStream(t, r, size) }, stream, raw, false)
}

// sink receives a disk.
type sink struct{}

func (sink) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// readStream reads an image as a stream.
func readStream(t testing.TB, r io.ReaderAt, size int64) error {
	b := make([]byte, size)
	if size > 0 {
		if _, err := r.ReadAt(b, 0); err != nil {
			return err
		}
	}
	stream, err := NewStream(bytes.NewReader(b))
	if err != nil {
		return err
	}
	return stream.Copy(t.Context(), sink{}, disk.Options{Workers: 1})
}

func TestHostileStreamsAreRejected(t *testing.T) {
	_, valid := small(t)
	for _, tc := range []disktest.Hostile{
		{Name: "tables in front", Change: disktest.Set(56, u64(21)...), Want: "vmdk: the tables of this image precede its grains: it cannot be read as a stream, but from a file"},
		{Name: "a huge overhead", Change: disktest.Set(64, u64(1<<40)...), Want: "vmdk: a descriptor of 20 sectors at sector 1 is not within the 1099511627776 sectors (at most 2048) before the grains"},
		{Name: "a descriptor that overflows", Change: disktest.Set(28, u64(1<<63)...), Want: "vmdk: a descriptor of 20 sectors at sector 9223372036854775808 is not within the 128 sectors (at most 2048) before the grains"},
		{Name: "a descriptor whose end overflows", Change: disktest.Set(28, u64(^uint64(10))...), Want: "vmdk: a descriptor of 20 sectors at sector 18446744073709551605 is not within the 128 sectors (at most 2048) before the grains"},
		{Name: "a descriptor with a host file", Change: described("RW 8192 FLAT \"/etc/passwd\" 0\n"), Want: `vmdk: the disk is in another file (extent "RW 8192 FLAT \"/etc/passwd\" 0"): only disks in one file are read; convert it to streamOptimized`},
		{Name: "a grain that is none", Change: disktest.Set(128*sector, 1), Want: "vmdk: the grain at sector 128 is marked as that of sector 1, which is not a grain of the disk"},
		{Name: "a grain after the end of the disk", Change: disktest.Set(128*sector, u64(1<<20)...), Want: "vmdk: the grain at sector 128 is marked as that of sector 1048576, which is not a grain of the disk"},
		{Name: "a grain after a later one", Change: disktest.Set(128*sector, u64(4096)...), Want: "vmdk: the grain of sector 128 follows a later one: it cannot be read as a stream, but from a file"},
		{Name: "a grain that is a bomb", Change: disktest.Set(128*sector+8, u32(1<<31)...), Want: "vmdk: the grain of sector 0 has 2147483648 compressed bytes: 1 to 131072 are expected"},
		{Name: "a table with other grains", Change: func(b []byte) []byte { b[tableOf(b)] ^= 1; return b }, Want: "vmdk: entry 0 of the grain table at sector 251 is 129 instead of 128"},
		{Name: "a table of another length", Change: func(b []byte) []byte { b[tableOf(b)-sector+1] = 1; return b }, Want: "vmdk: the grain table at sector 251 has 260 sectors instead of 4"},
		{Name: "an unknown marker", Change: func(b []byte) []byte { b[tableOf(b)-sector+12] = 9; return b }, Want: "vmdk: unknown marker 9 at sector 250"},
		{Name: "a directory with other tables", Change: func(b []byte) []byte { b[len(b)-4*sector] ^= 1; return b }, Want: "vmdk: entry 0 of the grain directory is 250 instead of 251"},
		{Name: "a footer with another directory", Change: func(b []byte) []byte { b[len(b)-2*sector+56] ^= 1; return b }, Want: "vmdk: the footer names the grain directory at sector 257, which is at sector 256"},
		{Name: "no footer", Change: func(b []byte) []byte { b[len(b)-3*sector+12] = 0; return b }, Want: "vmdk: truncated: the stream ends at sector 257 before its footer"},
	} {
		t.Run(tc.Name, func(t *testing.T) {
			b := tc.Change(bytes.Clone(valid))
			err := readStream(t, bytes.NewReader(b), int64(len(b)))
			var problem *disk.FormatError
			if !errors.As(err, &problem) || err.Error() != tc.Want {
				t.Errorf("the error is\n\t%v\ninstead of\n\t%s", err, tc.Want)
			}
		})
	}
}

func TestWhatQEMUWritesIsNotAStream(t *testing.T) {
	path := disktest.Convert(t, disktest.SmallSample(t), "vmdk", "-o", "subformat=streamOptimized")
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := NewStream(file); err == nil {
		t.Error("it is read as a stream")
	}
}

// The images are small, so that many are tried.
func FuzzVMDK(f *testing.F) {
	path := disktest.Raw(f, 128*disktest.KiB, disktest.Range{Offset: 64 * disktest.KiB, Length: 16 * disktest.KiB})
	f.Add(testfile.Read(f, encoded(f, rawImage(f, path), EncodeOptions{})))
	f.Add(testfile.Read(f, disktest.Recorded(f, path, "vmdk", "-o", "subformat=monolithicSparse")))
	f.Add(testfile.Read(f, disktest.Recorded(f, path, "vmdk", "-o", "subformat=streamOptimized")))
	f.Add([]byte("# Disk DescriptorFile\nRW 8 FLAT \"/etc/passwd\" 0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		disktest.Fuzz(t, Open, bytes.NewReader(b), int64(len(b)))
		_ = readStream(t, bytes.NewReader(b), int64(len(b)))
	})
}
