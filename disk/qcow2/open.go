package qcow2

import (
	"encoding/binary"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/internal/blocks"
	"github.com/vmstencil/stencil/disk/internal/inflate"
	"github.com/vmstencil/stencil/disk/internal/source"
)

// tablesMemory is the number of bytes of L2 tables that are cached.
const tablesMemory = 4 << 20

// Parts of entries of L1 and L2 tables.
const (
	offsetMask     = 0x00fffffffffffe00
	flagCopied     = 1 << 63
	flagCompressed = 1 << 62
	flagZero       = 1
)

// image is the map of a qcow2 file.
type image struct {
	header
	source.Source
	// l1 holds the offsets of L2 tables, 0 for none.
	l1     []int64
	tables *source.Tables
	zstd   *zstdDecoder
}

// Open returns the disk in a qcow2 file of a size in bytes. It reads all tables of the file first: errors in them are found before any data
// is read.
func Open(r io.ReaderAt, size int64) (disk.Image, error) {
	file := source.Source{ReaderAt: r, Size: size, Format: disk.QCOW2}
	h, err := readHeader(file)
	if err != nil {
		return nil, err
	}
	if err := checkSnapshots(file, h); err != nil {
		return nil, err
	}
	m := &image{header: h, Source: file, tables: source.NewTables(file, "L2 table", int(h.cluster()), tablesMemory)}
	if h.compression == zstd {
		if m.zstd, err = newZstd(); err != nil {
			return nil, err
		}
	}
	if err := m.readL1(); err != nil {
		return nil, err
	}
	compressed, err := m.checkTables()
	if err != nil {
		return nil, err
	}
	return blocks.New(disk.Info{Format: disk.QCOW2, Size: int64(h.size), Unit: h.cluster(), Compressed: compressed}, file, m), nil
}

func (m *image) readL1() error {
	needed, bytes := m.l1Needed(), int64(m.l1Size)*8
	switch {
	case bytes > maxL1:
		return disk.QCOW2.Errorf("an L1 table of %d entries is larger than the limit of %d", m.l1Size, maxL1/8)
	case int64(m.l1Size) < needed:
		return disk.QCOW2.Errorf("an L1 table of %d entries is too small for %d bytes: it needs %d", m.l1Size, m.size, needed)
	case m.l1Offset > math.MaxInt64 || int64(m.l1Offset)%m.cluster() != 0:
		return disk.QCOW2.Errorf("the L1 table at byte %d is not at a multiple of the cluster size of %d", m.l1Offset, m.cluster())
	}
	// Checked before memory is used for it.
	if err := m.Check("L1 table", int64(m.l1Offset), bytes); err != nil {
		return err
	}
	b := make([]byte, needed*8)
	if err := m.Read("L1 table", b, int64(m.l1Offset)); err != nil {
		return err
	}
	m.l1 = make([]int64, needed)
	for i := range m.l1 {
		entry := binary.BigEndian.Uint64(b[8*i:])
		m.l1[i] = int64(entry & offsetMask)
		if entry&^(offsetMask|flagCopied) != 0 || m.l1[i]%m.cluster() != 0 {
			return disk.QCOW2.Errorf("entry %d of the L1 table, %#x, is not the offset of a cluster", i, entry)
		}
		if l1 := int64(m.l1Offset); m.l1[i] >= l1 && m.l1[i] < l1+bytes {
			return disk.QCOW2.Errorf("entry %d of the L1 table names the L1 table itself", i)
		}
	}
	used := slices.Clone(m.l1)
	slices.Sort(used)
	for i := 1; i < len(used); i++ {
		if used[i] != 0 && used[i] == used[i-1] {
			return disk.QCOW2.Errorf("two entries of the L1 table name the L2 table at byte %d", used[i])
		}
	}
	return nil
}

// checkTables reads all tables, and returns whether clusters are compressed. Clusters that lie in each other would make the disk larger than
// its file.
func (m *image) checkTables() (compressed bool, err error) {
	var stored int64
	for number, count := int64(0), (int64(m.size)+m.cluster()-1)/m.cluster(); number < count; {
		place, err := m.Find(number)
		if err != nil {
			return false, err
		}
		switch {
		case place.Packed:
			compressed = true
			// Of its sectors, the first and the last may hold other clusters as well.
			stored += max(place.Length-2*512, 1)
		case place.Stored:
			stored += place.Length
		}
		number += max(place.Run, 1)
	}
	if stored > m.Size {
		return false, disk.QCOW2.Errorf("the L2 tables name %d bytes of clusters, more than the file has (%d)", stored, m.Size)
	}
	return compressed, nil
}

// Find implements blocks.Map.
func (m *image) Find(number int64) (blocks.Place, error) {
	index := number % m.l2Entries()
	offset := m.l1[number/m.l2Entries()]
	if offset == 0 {
		return blocks.Place{Run: m.l2Entries() - index}, nil
	}
	table, err := m.tables.At(offset)
	if err != nil {
		return blocks.Place{}, err
	}
	entry := binary.BigEndian.Uint64(table[m.l2Entry()*index:])
	if entry&flagCompressed != 0 {
		return m.compressedPlace(number, entry)
	}
	at := int64(entry & offsetMask)
	allowed := uint64(offsetMask | flagCopied)
	if m.version >= 3 && !m.extended {
		allowed |= flagZero
	}
	if entry&^allowed != 0 || at%m.cluster() != 0 {
		return blocks.Place{}, disk.QCOW2.Errorf("the entry of cluster %d, %#x, is not the offset of a cluster", number, entry)
	}
	if m.extended {
		return m.extendedPlace(number, at, binary.BigEndian.Uint64(table[m.l2Entry()*index+8:]))
	}
	if at == 0 || entry&flagZero != 0 {
		return blocks.Place{Run: 1}, nil
	}
	place := blocks.Place{Stored: true, Offset: at, Length: min(m.cluster(), int64(m.size)-number*m.cluster())}
	return place, m.Check("cluster", place.Offset, place.Length)
}

// extendedPlace decodes the bitmap of a cluster with subclusters: 32 bits for those that are stored, and before them 32 for those that are zero. The
// others are zero, too, because there is no backing file.
func (m *image) extendedPlace(number, at int64, bitmap uint64) (blocks.Place, error) {
	stored, zero := uint32(bitmap), uint32(bitmap>>32)
	if stored&zero != 0 || at == 0 && stored != 0 {
		return blocks.Place{}, disk.QCOW2.Errorf("the bitmap of cluster %d, %#x, contradicts itself or its entry", number, bitmap)
	}
	if stored == 0 {
		return blocks.Place{Run: 1}, nil
	}
	// The file may end after the last subcluster that is stored, and the disk in it.
	subcluster := m.cluster() / 32
	end := min(subcluster*int64(bits.Len32(stored)), int64(m.size)-number*m.cluster())
	place := blocks.Place{Stored: true, Offset: at, Length: min(subcluster*int64(bits.OnesCount32(stored)), end)}
	if stored != math.MaxUint32 {
		place.Parts = stored
	}
	return place, m.Check("cluster", at, end)
}

// compressedPlace decodes the entry of a compressed cluster: an offset in bytes, and the number of sectors after the one that it is in.
func (m *image) compressedPlace(number int64, entry uint64) (blocks.Place, error) {
	width := 62 - (m.clusterBits - 8)
	at := int64(entry & (1<<width - 1))
	sectors := int64(entry&(flagCompressed-1)>>width) + 1
	// The last sector of the file may be cut.
	place := blocks.Place{Stored: true, Packed: true, Offset: at, Length: min(sectors*512-at%512, m.Size-at)}
	if at == 0 || at >= m.Size || entry&flagCopied != 0 {
		return place, disk.QCOW2.Errorf("the entry of cluster %d, %#x, is not the place of a compressed cluster in a file of %d bytes", number, entry, m.Size)
	}
	return place, nil
}

// Unpack implements blocks.Map.
func (m *image) Unpack(number int64, place blocks.Place, p []byte) error {
	buffer := inflate.Buffer(int(place.Length))
	defer inflate.Release(buffer)
	if err := m.Read("compressed cluster", *buffer, place.Offset); err != nil {
		return err
	}
	var n int
	var err error
	if m.zstd != nil {
		n, err = m.zstd.decode(*buffer, p, int(m.cluster()))
	} else {
		n, err = inflate.Raw(*buffer, p, int(m.cluster()))
	}
	if err != nil {
		return disk.QCOW2.Errorf("compressed cluster %d: %v", number, err)
	}
	if n < len(p) {
		return disk.QCOW2.Errorf("compressed cluster %d has %d bytes instead of %d", number, n, m.cluster())
	}
	return nil
}
