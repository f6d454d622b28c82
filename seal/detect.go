package seal

import (
	"io"

	"github.com/vmstencil/stencil/seal/internal/ext"
	"github.com/vmstencil/stencil/seal/internal/inode"
	"github.com/vmstencil/stencil/seal/internal/xfs"
)

// fileSystem is what the rules need of a file system.
type fileSystem interface {
	Root() uint64
	// Dirty returns why what is read may be outdated; empty if nothing shows that it is.
	Dirty() string
	Stat(number uint64) (inode.Info, error)
	ReadDir(number uint64, visit inode.Visit) error
}

// kind is a kind of contents of a partition.
type kind struct {
	// name is that in reports; empty if the contents are not known.
	name string
	// open is nil for contents that are not examined.
	open func(io.ReaderAt) (fileSystem, error)
	// empty is true for contents without files.
	empty bool
	// boot is true for file systems that begin with a boot sector, which has the signature of a partition table.
	boot bool
}

// covers reports whether a disk with these contents at its start has no partitions, although a partition table was found.
func (k kind) covers(table bool) bool { return k.name != "" && (!table || k.boot) }

var extKind = kind{name: "ext", open: func(r io.ReaderAt) (fileSystem, error) { return ext.Open(r) }}

var xfsKind = kind{name: "XFS", open: func(r io.ReaderAt) (fileSystem, error) { return xfs.Open(r) }}

// magics are contents that are recognized, and not examined.
var magics = []struct {
	offset int64
	magic  string
	kind   kind
}{
	{3, "NTFS    ", kind{name: "NTFS", boot: true}},
	{3, "-FVE-FS-", kind{name: "BitLocker", boot: true}},
	{3, "EXFAT   ", kind{name: "exFAT", boot: true}},
	{3, "ReFS\x00", kind{name: "ReFS", boot: true}},
	{54, "FAT1", kind{name: "FAT", boot: true}},
	{82, "FAT32", kind{name: "FAT", boot: true}},
	{0, "LUKS\xba\xbe", kind{name: "LUKS"}},
	{0, "hsqs", kind{name: "squashfs"}},
	{512, "LABELONE", kind{name: "LVM"}},
	{0, "LABELONE", kind{name: "LVM"}},
	{1024, "LABELONE", kind{name: "LVM"}},
	{1536, "LABELONE", kind{name: "LVM"}},
	{1024, "\x10\x20\xf5\xf2", kind{name: "F2FS"}},
	{1024, "\xe2\xe1\xf5\xe0", kind{name: "EROFS"}},
	{4096, "\xfc\x4e\x2b\xa9", kind{name: "Linux RAID"}},
	{4086, "SWAPSPACE2", kind{name: "swap", empty: true}},
	{32769, "CD001", kind{name: "ISO 9660"}},
	{65600, "_BHRfS_M", kind{name: "btrfs"}},
}

// detect returns the kind of contents of a partition by their magic numbers.
func detect(r io.ReaderAt) kind {
	for _, m := range magics {
		b := make([]byte, len(m.magic))
		if _, err := r.ReadAt(b, m.offset); err == nil && string(b) == m.magic {
			return m.kind
		}
	}
	switch {
	case xfs.Is(r):
		return xfsKind
	case ext.Is(r):
		return extKind
	}
	return kind{}
}
