package qcow2

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/internal/disktest"
	"github.com/vmstencil/stencil/internal/testfile"
)

// small returns a disk of 4 MiB and an image of it, whose L1 table is at byte 0x30000 and whose L2 table follows.
func small(t testing.TB, options ...string) (raw, image []byte) {
	path := disktest.Raw(t, 4*disktest.MiB, disktest.Range{Offset: 0, Length: 200 * disktest.KiB}, disktest.Range{Offset: 2 * disktest.MiB, Length: 64 * disktest.KiB})
	return testfile.Read(t, path), testfile.Read(t, disktest.Recorded(t, path, "qcow2", options...))
}

func u32(value uint32) []byte { return binary.BigEndian.AppendUint32(nil, value) }
func u64(value uint64) []byte { return binary.BigEndian.AppendUint64(nil, value) }

// all makes changes one after another.
func all(changes ...func([]byte) []byte) func([]byte) []byte {
	return func(b []byte) []byte {
		for _, change := range changes {
			b = change(b)
		}
		return b
	}
}

const (
	l1At = 0x30000
	l2At = 0x40000
)

func TestHostileImagesAreRejected(t *testing.T) {
	_, image := small(t)
	disktest.CheckHostile(t, Open, image, []disktest.Hostile{
		{Name: "an empty file", Change: disktest.Cut(0), Want: "qcow2: header: 72 bytes at byte 0 are beyond the end of the file, which has 0 bytes"},
		{Name: "half a header", Change: disktest.Cut(80), Want: "qcow2: truncated: the file ends in the header"},
		{Name: "another magic number", Change: disktest.Set(0, 'X'), Want: "qcow2: no qcow2 image: the magic number is 584649fb"},
		{Name: "version 1", Change: disktest.Set(4, u32(1)...), Want: "qcow2: version 1 is not supported: 2 and 3 are"},
		{Name: "a backing file", Change: all(disktest.Set(8, u64(1000)...), disktest.Set(16, u32(11)...), disktest.Set(1000, []byte("/etc/passwd")...)), Want: `qcow2: it has the backing file "/etc/passwd": convert it with qemu-img convert, so that it holds the whole disk`},
		{Name: "a backing file with a long name", Change: all(disktest.Set(8, u64(1000)...), disktest.Set(16, u32(1<<31)...)), Want: "qcow2: it has a backing file, whose name of 2147483648 bytes at byte 1000 is out of bounds"},
		{Name: "a backing file with a name outside the file", Change: all(disktest.Set(8, u64(1<<63)...), disktest.Set(16, u32(11)...)), Want: "qcow2: it has a backing file, whose name of 11 bytes at byte 9223372036854775808 is out of bounds"},
		{Name: "an external data file", Change: disktest.Set(79, featureDataFile), Want: "qcow2: its data is in another file: convert it with qemu-img convert, without data_file"},
		{Name: "an external data file in an extension only", Change: all(disktest.Set(112, u32(extensionDataFile)...), disktest.Set(116, u32(11)...), disktest.Set(120, []byte("/etc/passwd")...)), Want: `qcow2: its data is in the file "/etc/passwd": convert it with qemu-img convert, without data_file`},
		{Name: "a header for encryption in an extension only", Change: all(disktest.Set(112, u32(extensionCrypto)...), disktest.Set(116, u32(16)...)), Want: "qcow2: it has a header for encryption: decrypt it with qemu-img convert"},
		{Name: "an extension that is longer than its cluster", Change: disktest.Set(116, u32(1<<32-1)...), Want: "qcow2: the header extension 0x6803f857 of 4294967295 bytes at byte 112 is longer than the first cluster"},
		{Name: "encryption", Change: disktest.Set(32, u32(2)...), Want: "qcow2: encrypted (method 2): decrypt it with qemu-img convert"},
		{Name: "unknown incompatible features", Change: disktest.Set(72, 0x80, 0, 0, 0, 0, 0, 0, 0x20), Want: "qcow2: unknown incompatible features 0x8000000000000020"},
		{Name: "marked as corrupt", Change: disktest.Set(79, featureCorrupt), Want: "qcow2: marked as corrupt: repair it with qemu-img check -r all"},
		{Name: "extended L2 entries in small clusters", Change: all(disktest.Set(79, featureExtendedL2), disktest.Set(20, u32(13)...)), Want: "qcow2: clusters of 2^13 bytes with extended L2 entries are not supported: 2^14 to 2^21 are"},
		{Name: "another compression type", Change: all(disktest.Set(79, featureCompression), disktest.Set(104, 2)), Want: "qcow2: compression type 2 is not supported: 0 (zlib) and 1 (zstd) are"},
		{Name: "a compression type without its feature", Change: disktest.Set(104, zstd), Want: "qcow2: compression type 1 contradicts the features 0x0"},
		{Name: "a short header", Change: disktest.Set(100, u32(96)...), Want: "qcow2: a header of 96 bytes is not a multiple of 8 from 104 to 4096"},
		{Name: "a long header", Change: disktest.Set(100, u32(1<<31)...), Want: "qcow2: a header of 2147483648 bytes is not a multiple of 8 from 104 to 4096"},
		{Name: "small clusters", Change: disktest.Set(20, u32(8)...), Want: "qcow2: clusters of 2^8 bytes are not supported: 2^9 to 2^21 are"},
		{Name: "huge clusters", Change: disktest.Set(20, u32(63)...), Want: "qcow2: clusters of 2^63 bytes are not supported: 2^9 to 2^21 are"},
		{Name: "a size that overflows", Change: disktest.Set(24, u64(1<<63)...), Want: "qcow2: a size of 9223372036854775808 bytes is more than the limit of 70368744177664"},
		{Name: "a size beyond the limit", Change: disktest.Set(24, u64(64<<40+1)...), Want: "qcow2: a size of 70368744177665 bytes is more than the limit of 70368744177664"},
		{Name: "a size beyond its L1 table", Change: disktest.Set(24, u64(64<<40)...), Want: "qcow2: an L1 table of 1 entries is too small for 70368744177664 bytes: it needs 131072"},
		{Name: "a bomb of an L1 table", Change: disktest.Set(36, u32(1<<32-1)...), Want: "qcow2: an L1 table of 4294967295 entries is larger than the limit of 4194304"},
		{Name: "an L1 table that is not in the file", Change: all(disktest.Set(24, u64(64<<40)...), disktest.Set(36, u32(4<<20)...)), Want: "qcow2: L1 table: 33554432 bytes at byte 196608 are beyond the end of the file, which has 655360 bytes"},
		{Name: "an L1 table beyond the file", Change: disktest.Set(40, u64(1<<40)...), Want: "qcow2: L1 table: 8 bytes at byte 1099511627776 are beyond the end of the file, which has 655360 bytes"},
		{Name: "an L1 table at an offset that overflows", Change: disktest.Set(40, u64(1<<63)...), Want: "qcow2: the L1 table at byte 9223372036854775808 is not at a multiple of the cluster size of 65536"},
		{Name: "an L1 table between clusters", Change: disktest.Set(40, u64(l1At+8)...), Want: "qcow2: the L1 table at byte 196616 is not at a multiple of the cluster size of 65536"},
		{Name: "many snapshots", Change: disktest.Set(60, u32(1<<32-1)...), Want: "qcow2: 4294967295 internal snapshots are more than the limit of 4096"},
		{Name: "a snapshot table beyond the file", Change: all(disktest.Set(60, u32(1)...), disktest.Set(64, u64(1<<40)...)), Want: "qcow2: snapshot table: 40 bytes at byte 1099511627776 are beyond the end of the file, which has 655360 bytes"},
		{Name: "a snapshot table at an offset that overflows", Change: all(disktest.Set(60, u32(1)...), disktest.Set(64, u64(1<<63)...)), Want: "qcow2: the snapshot table at byte 9223372036854775808 is beyond the end of the file"},
		{Name: "a snapshot with a table beyond the file", Change: all(disktest.Set(60, u32(1)...), disktest.Set(64, u64(2000)...), disktest.Set(2000, u64(1<<40)...), disktest.Set(2008, u32(8)...)), Want: "qcow2: L1 table of a snapshot: 64 bytes at byte 1099511627776 are beyond the end of the file, which has 655360 bytes"},
		{Name: "a snapshot with a bomb of a table", Change: all(disktest.Set(60, u32(1)...), disktest.Set(64, u64(2000)...), disktest.Set(2008, u32(1<<31)...)), Want: "qcow2: the L1 table of snapshot 0, 2147483648 entries at byte 0, is out of bounds"},
		{Name: "a snapshot with much extra data", Change: all(disktest.Set(60, u32(1)...), disktest.Set(64, u64(2000)...), disktest.Set(2036, u32(1<<31)...)), Want: "qcow2: snapshot 0 has 2147483648 bytes of extra data: the limit is 1024"},
		{Name: "an L1 entry with reserved bits", Change: disktest.Set(l1At, u64(l2At|1)...), Want: "qcow2: entry 0 of the L1 table, 0x40001, is not the offset of a cluster"},
		{Name: "an L1 entry between clusters", Change: disktest.Set(l1At, u64(l2At+512)...), Want: "qcow2: entry 0 of the L1 table, 0x40200, is not the offset of a cluster"},
		{Name: "an L2 table beyond the file", Change: disktest.Set(l1At, u64(1<<40)...), Want: "qcow2: L2 table: 65536 bytes at byte 1099511627776 are beyond the end of the file, which has 655360 bytes"},
		{Name: "a table that is its own L2 table", Change: disktest.Set(l1At, u64(l1At)...), Want: "qcow2: entry 0 of the L1 table names the L1 table itself"},
		{Name: "a cluster beyond the file", Change: disktest.Set(l2At, u64(1<<40)...), Want: "qcow2: cluster: 65536 bytes at byte 1099511627776 are beyond the end of the file, which has 655360 bytes"},
		{Name: "a cluster between clusters", Change: disktest.Set(l2At, u64(0x50200)...), Want: "qcow2: the entry of cluster 0, 0x50200, is not the offset of a cluster"},
		{Name: "a cluster with reserved bits", Change: disktest.Set(l2At, u64(0x50002)...), Want: "qcow2: the entry of cluster 0, 0x50002, is not the offset of a cluster"},
		{Name: "more clusters than the file has room for", Change: func(b []byte) []byte {
			for i := range 64 {
				copy(b[l2At+8*i:], u64(0x50000))
			}
			return b
		}, Want: "qcow2: the L2 tables name 4194304 bytes of clusters, more than the file has (655360)"},
		{Name: "an L2 table of two L1 entries", Change: all(disktest.Set(24, u64(600<<20)...), disktest.Set(36, u32(2)...), disktest.Set(l1At, u64(l2At)...), disktest.Set(l1At+8, u64(l2At)...)), Want: "qcow2: two entries of the L1 table name the L2 table at byte 262144"},
	})
}

func TestHostileSubclustersAreRejected(t *testing.T) {
	_, image := small(t, "-o", "extended_l2=on")
	const bitmapAt = l2At + 8
	disktest.CheckHostile(t, Open, image, []disktest.Hostile{
		{Name: "a subcluster that is stored and zero", Change: disktest.Set(bitmapAt, u64(1<<32|1)...), Want: "qcow2: the bitmap of cluster 0, 0x100000001, contradicts itself or its entry"},
		{Name: "a stored subcluster without a cluster", Change: all(disktest.Set(l2At, u64(0)...), disktest.Set(bitmapAt, u64(1)...)), Want: "qcow2: the bitmap of cluster 0, 0x1, contradicts itself or its entry"},
		{Name: "a cluster of zeros, which has no subclusters", Change: disktest.Set(l2At, u64(0x50001)...), Want: "qcow2: the entry of cluster 0, 0x50001, is not the offset of a cluster"},
		{Name: "a cluster beyond the file", Change: disktest.Set(l2At, u64(1<<40)...), Want: "qcow2: cluster: 65536 bytes at byte 1099511627776 are beyond the end of the file, which has 655360 bytes"},
		{Name: "a subcluster beyond the file", Change: all(disktest.Set(l2At, u64(0x90000)...), disktest.Set(bitmapAt, u64(1<<31)...), disktest.Cut(0x90000+32*2048-1)), Want: "qcow2: cluster: 65536 bytes at byte 589824 are beyond the end of the file, which has 655359 bytes"},
		{Name: "more subclusters than the file has room for", Change: func(b []byte) []byte {
			for i := range 64 {
				copy(b[l2At+16*i:], append(u64(0x50000), u64(0xffff)...))
			}
			return b
		}, Want: "qcow2: the L2 tables name 2097152 bytes of clusters, more than the file has (655360)"},
	})
}

func TestHostileImagesOfVersion2AreRejected(t *testing.T) {
	_, image := small(t, "-o", "compat=0.10")
	disktest.CheckHostile(t, Open, image, []disktest.Hostile{
		{Name: "a cluster of zeros", Change: disktest.Set(l2At, u64(flagZero)...), Want: "qcow2: the entry of cluster 0, 0x1, is not the offset of a cluster"},
		{Name: "a backing file", Change: all(disktest.Set(8, u64(1000)...), disktest.Set(16, u32(200)...), disktest.Set(1000, []byte(strings.Repeat("../", 70))...)), Want: `qcow2: it has the backing file "../../../../../../../../../../../../../../../../../../../../../../../../../../../../../../../../../../../../../../../../../../.."…: convert it with qemu-img convert, so that it holds the whole disk`},
	})
}

// compressedEntry returns the entry of a compressed cluster of 64 KiB.
func compressedEntry(offset, sectors uint64) []byte {
	return u64(flagCompressed | (sectors-1)<<54 | offset)
}

func TestHostileCompressedClustersAreRejected(t *testing.T) {
	_, image := small(t, "-c")
	bomb := deflated(t, make([]byte, 1<<20))
	disktest.CheckHostile(t, Open, image, []disktest.Hostile{
		{Name: "a cluster beyond the file", Change: disktest.Set(l2At, compressedEntry(1<<50, 1)...), Want: "qcow2: the entry of cluster 0, 0x4004000000000000, is not the place of a compressed cluster in a file of 444928 bytes"},
		{Name: "a cluster in the header", Change: disktest.Set(l2At, compressedEntry(0, 1)...), Want: "qcow2: the entry of cluster 0, 0x4000000000000000, is not the place of a compressed cluster in a file of 444928 bytes"},
		{Name: "a cluster that is not compressed", Change: disktest.Set(l2At, compressedEntry(8, 1)...), Want: "reading 262144 bytes at byte 0 of the disk: qcow2: compressed cluster 0: the compressed data is corrupt"},
		{Name: "a cluster that is short", Change: all(disktest.Set(2048, deflated(t, make([]byte, 100))...), disktest.Set(l2At, compressedEntry(2048, 1)...)), Want: "reading 262144 bytes at byte 0 of the disk: qcow2: compressed cluster 0 has 100 bytes instead of 65536"},
		{Name: "a cluster that is cut", Change: all(disktest.Set(2048, deflated(t, bytes.Repeat([]byte("0123456789"), 100))[:12]...), disktest.Set(l2At, compressedEntry(2048+500, 1)...), disktest.Set(2048+500, deflated(t, bytes.Repeat([]byte("0123456789"), 100))[:12]...)), Want: "reading 262144 bytes at byte 0 of the disk: qcow2: compressed cluster 0: the compressed data is truncated"},
		{Name: "a cluster that is a bomb", Change: all(disktest.Set(2048, bomb...), disktest.Set(l2At, compressedEntry(2048, 4)...)), Want: "reading 262144 bytes at byte 0 of the disk: qcow2: compressed cluster 0: the data is longer than its unit"},
		{Name: "more clusters than the file has room for", Change: func(b []byte) []byte {
			for i := range 64 {
				copy(b[l2At+8*i:], compressedEntry(0x50000, 256))
			}
			return b
		}, Want: "qcow2: the L2 tables name 7438336 bytes of clusters, more than the file has (444928)"},
	})
	_, image = small(t, "-c", "-o", "compression_type=zstd")
	disktest.CheckHostile(t, Open, image, []disktest.Hostile{
		{Name: "zstd: a cluster that is not compressed", Change: disktest.Set(l2At, compressedEntry(8, 1)...), Want: "reading 262144 bytes at byte 0 of the disk: qcow2: compressed cluster 0: the compressed data is corrupt"},
		{Name: "zstd: a frame without an end", Change: all(disktest.Set(2048, 0x28, 0xb5, 0x2f, 0xfd, 0x20, 0xff, 0xfc, 0xff, 0xff), disktest.Set(l2At, compressedEntry(2048, 1)...)), Want: "reading 262144 bytes at byte 0 of the disk: qcow2: compressed cluster 0: the compressed data is truncated"},
		// A frame of 2 GiB: blocks of 128 KiB of one repeated byte.
		{Name: "zstd: a cluster that is a bomb", Change: all(disktest.Set(2048, append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58}, bytes.Repeat([]byte{0x02, 0x00, 0x10, 0x00}, 400)...)...), disktest.Set(2048+6+400*4, 0x03, 0, 0x10, 0), disktest.Set(l2At, compressedEntry(2048, 5)...)), Want: "reading 262144 bytes at byte 0 of the disk: qcow2: compressed cluster 0: the data is longer than its unit"},
		{Name: "zstd: a frame of a declared size that is a bomb", Change: all(disktest.Set(2048, append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0}, append(binary.LittleEndian.AppendUint64(nil, 1<<40), 0x03, 0, 0x10, 0)...)...), disktest.Set(l2At, compressedEntry(2048, 5)...)), Want: "reading 262144 bytes at byte 0 of the disk: qcow2: compressed cluster 0: the data is longer than its unit"},
		{Name: "zstd: a frame of a huge window", Change: all(disktest.Set(2048, 0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xff, 0x03, 0x00, 0x10, 0x00), disktest.Set(l2At, compressedEntry(2048, 5)...)), Want: "reading 262144 bytes at byte 0 of the disk: qcow2: compressed cluster 0: the compressed data is corrupt"},
		{Name: "zstd: a cluster that is short", Change: all(disktest.Set(2048, 0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x00, 0x43, 0x00, 0x00, 0x00), disktest.Set(l2At, compressedEntry(2048, 5)...)), Want: "reading 262144 bytes at byte 0 of the disk: qcow2: compressed cluster 0: the compressed data is corrupt"},
	})
}

func TestTruncatedImagesAreRejected(t *testing.T) {
	for _, options := range [][]string{{}, {"-c"}, {"-c", "-o", "compression_type=zstd"}, {"-o", "cluster_size=4k"}, {"-o", "extended_l2=on"}} {
		raw, image := small(t, options...)
		// The last clusters may be those of reference counts, which are not read.
		disktest.CheckTruncated(t, Open, image, raw, true)
	}
}

func FuzzQCOW2(f *testing.F) {
	path := disktest.Raw(f, 64*disktest.KiB, disktest.Range{Offset: 0, Length: 16 * disktest.KiB})
	for _, options := range [][]string{{"-o", "cluster_size=512"}, {"-o", "cluster_size=4k,compat=0.10"}, {"-c", "-o", "cluster_size=4k"}, {"-c", "-o", "cluster_size=4k,compression_type=zstd"}, {"-o", "cluster_size=16k,extended_l2=on"}} {
		f.Add(testfile.Read(f, disktest.Recorded(f, path, "qcow2", options...)))
	}
	f.Fuzz(func(t *testing.T, b []byte) { disktest.Fuzz(t, Open, bytes.NewReader(b), int64(len(b))) })
}

func deflated(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
