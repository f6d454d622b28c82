package qcow2

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/internal/source"
)

const (
	// headerV2 and headerV3 are the least lengths of a header in bytes.
	headerV2 = 72
	headerV3 = 104
	// maxHeader is the longest header that is read.
	maxHeader = 4096
	// Clusters of 512 bytes to 2 MiB, as in QEMU.
	minClusterBits = 9
	maxClusterBits = 21
	// minExtendedBits is the least cluster with extended L2 entries: 32 subclusters of 512 bytes.
	minExtendedBits = 14
	// maxL1 is the largest L1 table in bytes, as in QEMU.
	maxL1 = 32 << 20
	// maxName is the longest name of a backing file.
	maxName = 1023
)

// Incompatible features.
const (
	featureDirty = 1 << iota
	featureCorrupt
	featureDataFile
	featureCompression
	featureExtendedL2
	knownFeatures = 1<<iota - 1
)

// Types of header extensions.
const (
	extensionEnd      = 0
	extensionDataFile = 0x44415441
	extensionCrypto   = 0x0537be77
)

// compression types.
const (
	zlib = 0
	zstd = 1
)

// header holds the fields that reading needs.
type header struct {
	version     uint32
	clusterBits uint32
	size        uint64
	l1Size      uint32
	l1Offset    uint64
	snapshots   uint32
	snapshotsAt uint64
	compression uint8
	// extended means that entries of L2 tables have a bitmap of the subclusters.
	extended bool
	length   uint32
}

func (h header) cluster() int64 { return int64(1) << h.clusterBits }

// l2Entry is the length of an entry of an L2 table in bytes.
func (h header) l2Entry() int64 {
	if h.extended {
		return 16
	}
	return 8
}

// l2Entries is the number of entries of an L2 table.
func (h header) l2Entries() int64 { return h.cluster() / h.l2Entry() }

// l1Needed is the number of entries of the L1 table that the size needs.
func (h header) l1Needed() int64 {
	each := h.cluster() * h.l2Entries()
	return (int64(h.size) + each - 1) / each
}

// readHeader reads and checks the header and its extensions.
func readHeader(file source.Source) (header, error) {
	b := make([]byte, min(max(file.Size, headerV2), maxHeader))
	if err := file.Read("header", b, 0); err != nil {
		return header{}, err
	}
	if string(b[:4]) != "QFI\xfb" {
		return header{}, disk.QCOW2.Errorf("no qcow2 image: the magic number is %x", b[:4])
	}
	be := binary.BigEndian
	h := header{
		version:     be.Uint32(b[4:]),
		clusterBits: be.Uint32(b[20:]),
		size:        be.Uint64(b[24:]),
		l1Size:      be.Uint32(b[36:]),
		l1Offset:    be.Uint64(b[40:]),
		snapshots:   be.Uint32(b[60:]),
		snapshotsAt: be.Uint64(b[64:]),
		length:      headerV2,
	}
	if h.version != 2 && h.version != 3 {
		return h, disk.QCOW2.Errorf("version %d is not supported: 2 and 3 are", h.version)
	}
	if h.version == 3 {
		if err := h.readFeatures(b); err != nil {
			return h, err
		}
	}
	if offset := be.Uint64(b[8:]); offset != 0 {
		return h, backingFile(file, offset, be.Uint32(b[16:]))
	}
	if method := be.Uint32(b[32:]); method != 0 {
		return h, disk.QCOW2.Errorf("encrypted (method %d): decrypt it with qemu-img convert", method)
	}
	if h.clusterBits < minClusterBits || h.clusterBits > maxClusterBits {
		return h, disk.QCOW2.Errorf("clusters of 2^%d bytes are not supported: 2^%d to 2^%d are", h.clusterBits, minClusterBits, maxClusterBits)
	}
	if h.extended && h.clusterBits < minExtendedBits {
		return h, disk.QCOW2.Errorf("clusters of 2^%d bytes with extended L2 entries are not supported: 2^%d to 2^%d are", h.clusterBits, minExtendedBits, maxClusterBits)
	}
	if h.size > uint64(disk.MaxSize) {
		return h, disk.QCOW2.Errorf("a size of %d bytes is more than the limit of %d", h.size, disk.MaxSize)
	}
	return h, h.checkExtensions(b)
}

func (h *header) readFeatures(b []byte) error {
	be := binary.BigEndian
	if len(b) < headerV3 {
		return disk.QCOW2.Errorf("truncated: the file ends in the header")
	}
	h.length = be.Uint32(b[100:])
	if h.length < headerV3 || h.length%8 != 0 || int(h.length) > len(b) {
		return disk.QCOW2.Errorf("a header of %d bytes is not a multiple of 8 from %d to %d", h.length, headerV3, len(b))
	}
	features := be.Uint64(b[72:])
	if unknown := features &^ knownFeatures; unknown != 0 {
		return disk.QCOW2.Errorf("unknown incompatible features %#x", unknown)
	}
	h.extended = features&featureExtendedL2 != 0
	if h.length > headerV3 {
		h.compression = b[104]
	}
	switch {
	case features&featureCorrupt != 0:
		return disk.QCOW2.Errorf("marked as corrupt: repair it with qemu-img check -r all")
	case features&featureDataFile != 0:
		return disk.QCOW2.Errorf("its data is in another file: convert it with qemu-img convert, without data_file")
	case features&featureCompression != 0 != (h.compression != zlib):
		return disk.QCOW2.Errorf("compression type %d contradicts the features %#x", h.compression, features)
	case h.compression > zstd:
		return disk.QCOW2.Errorf("compression type %d is not supported: %d (zlib) and %d (zstd) are", h.compression, zlib, zstd)
	}
	return nil
}

// backingFile reports the name, which is not opened.
func backingFile(file source.Source, offset uint64, length uint32) error {
	if length > maxName || offset > uint64(maxHeader) {
		return disk.QCOW2.Errorf("it has a backing file, whose name of %d bytes at byte %d is out of bounds", length, offset)
	}
	name := make([]byte, length)
	if err := file.Read("name of the backing file", name, int64(offset)); err != nil {
		return err
	}
	return disk.QCOW2.Errorf("it has the backing file %s: convert it with qemu-img convert, so that it holds the whole disk", quoted(name))
}

// quoted shortens untrusted text.
func quoted(text []byte) string {
	if len(text) > 128 {
		return fmt.Sprintf("%.128q…", text)
	}
	return fmt.Sprintf("%q", text)
}

// checkExtensions rejects what has its data elsewhere or is encrypted without saying so in the header. The extensions end with the first
// cluster.
func (h header) checkExtensions(b []byte) error {
	end := min(int64(len(b)), h.cluster())
	for at := int64(h.length); at+8 <= end; {
		kind, length := binary.BigEndian.Uint32(b[at:]), int64(binary.BigEndian.Uint32(b[at+4:]))
		at += 8
		switch {
		case kind == extensionEnd:
			return nil
		case length > h.cluster()-at:
			return disk.QCOW2.Errorf("the header extension %#08x of %d bytes at byte %d is longer than the first cluster", kind, length, at-8)
		case kind == extensionDataFile:
			return disk.QCOW2.Errorf("its data is in the file %s: convert it with qemu-img convert, without data_file", quoted([]byte(strings.TrimRight(string(b[at:min(at+length, end)]), "\x00"))))
		case kind == extensionCrypto:
			return disk.QCOW2.Errorf("it has a header for encryption: decrypt it with qemu-img convert")
		}
		at += (length + 7) / 8 * 8
	}
	return nil
}
