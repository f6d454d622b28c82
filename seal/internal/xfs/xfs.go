// Package xfs reads directories and inodes of XFS, versions 4 and 5:
// https://git.kernel.org/pub/scm/fs/xfs/xfs-documentation.git. It reads no data of files. A block is read at a time, so that memory
// does not depend on what the file system claims; how much is read is bounded by the caller's reader.
package xfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/vmstencil/stencil/seal/internal/inode"
)

const (
	magic = "XFSB"

	features2Ftype = 0x200

	incompatFtype       = 0x1
	incompatNeedsRepair = 0x10
	incompatSupported   = incompatFtype | 0x2 /* sparse inodes */ | 0x4 /* metadata UUID */ | 0x8 /* bigtime */ | incompatNeedsRepair |
		0x20 /* nrext64 */ | 0x40 /* exchange range */ | 0x80 /* parent pointers */ | 0x100 /* metadata directories */

	// maxBlock is the largest size of a block and of a block of a directory.
	maxBlock = 65536
)

// FileSystem is an opened file system.
type FileSystem struct {
	r        io.ReaderAt
	block    uint64
	blockLog uint8
	// directoryBlock is a number of blocks.
	directoryBlock uint64
	root           uint64
	agBlocks       uint64
	agCount        uint64
	agBlockLog     uint8
	inodeSize      uint64
	inodesLog      uint8
	// ftype is true if names have the type of their file.
	ftype bool
}

// Is reports whether a superblock of XFS begins at byte 0.
func Is(r io.ReaderAt) bool {
	var b [4]byte
	_, err := r.ReadAt(b[:], 0)
	return err == nil && string(b[:]) == magic
}

// Open reads the superblock. The file system begins at byte 0 of the reader.
func Open(r io.ReaderAt) (*FileSystem, error) {
	sb := make([]byte, 512)
	if _, err := r.ReadAt(sb, 0); err != nil {
		return nil, fmt.Errorf("reading the superblock: %w", err)
	}
	be := binary.BigEndian
	damaged := errors.New("the superblock is damaged")
	if string(sb[:4]) != magic {
		return nil, damaged
	}
	f := &FileSystem{
		r:          r,
		block:      uint64(be.Uint32(sb[4:])),
		blockLog:   sb[120],
		root:       be.Uint64(sb[56:]),
		agBlocks:   uint64(be.Uint32(sb[84:])),
		agCount:    uint64(be.Uint32(sb[88:])),
		agBlockLog: sb[124],
		inodeSize:  uint64(be.Uint16(sb[104:])),
		inodesLog:  sb[123],
	}
	directoryLog := sb[192]
	if f.blockLog < 9 || f.blockLog > 16 || f.block != 1<<f.blockLog || f.agBlockLog > 31 || f.agBlocks == 0 || f.agBlocks > 1<<f.agBlockLog ||
		f.inodesLog > 8 || f.inodeSize < 256 || f.inodeSize > 2048 || f.inodeSize<<f.inodesLog != f.block || directoryLog > 7 || f.block<<directoryLog > maxBlock {
		return nil, damaged
	}
	f.directoryBlock = 1 << directoryLog
	switch version := be.Uint16(sb[100:]) & 0xF; version {
	case 4:
		f.ftype = be.Uint32(sb[200:])&features2Ftype != 0
	case 5:
		incompat := be.Uint32(sb[216:])
		if unsupported := incompat &^ incompatSupported; unsupported != 0 {
			return nil, fmt.Errorf("features %#x are not supported", unsupported)
		}
		if incompat&incompatNeedsRepair != 0 {
			return nil, errors.New("the file system needs repair")
		}
		f.ftype = incompat&incompatFtype != 0
	default:
		return nil, fmt.Errorf("version %d is not supported", version)
	}
	return f, nil
}

// Root is the number of the inode of the root directory.
func (f *FileSystem) Root() uint64 { return f.root }

// Dirty returns an empty string: the superblock does not show whether the log has changes that are not in place.
func (f *FileSystem) Dirty() string { return "" }

// Stat returns what an inode contains.
func (f *FileSystem) Stat(number uint64) (inode.Info, error) {
	raw, err := f.inode(number)
	if err != nil {
		return inode.Info{}, err
	}
	return raw.info(), nil
}

// readBlock reads a block into a buffer of its size. Its number has the allocation group in the upper bits.
func (f *FileSystem) readBlock(b []byte, number uint64) error {
	group, block := number>>f.agBlockLog, number&(1<<f.agBlockLog-1)
	if group >= f.agCount || block >= f.agBlocks {
		return fmt.Errorf("block %d is outside of the file system", number)
	}
	_, err := f.r.ReadAt(b, int64((group*f.agBlocks+block)*f.block))
	return err
}

// rawInode is an inode as it is stored, at least 256 bytes.
type rawInode []byte

func (f *FileSystem) inode(number uint64) (rawInode, error) {
	index := number & (1<<f.inodesLog - 1)
	block := number >> f.inodesLog
	group, inGroup := block>>f.agBlockLog, block&(1<<f.agBlockLog-1)
	if group >= f.agCount || inGroup >= f.agBlocks {
		return nil, fmt.Errorf("inode %d does not exist", number)
	}
	raw := make(rawInode, f.inodeSize)
	if _, err := f.r.ReadAt(raw, int64((group*f.agBlocks+inGroup)*f.block+index*f.inodeSize)); err != nil {
		return nil, fmt.Errorf("reading inode %d: %w", number, err)
	}
	if string(raw[:2]) != "IN" {
		return nil, fmt.Errorf("inode %d is damaged", number)
	}
	return raw, nil
}

func (i rawInode) info() inode.Info {
	return inode.Info{Type: inode.TypeOf(binary.BigEndian.Uint16(i[2:])), Size: binary.BigEndian.Uint64(i[56:])}
}

// extents is the number of extents of the data.
func (i rawInode) extents() uint64 {
	const manyExtents = 1 << 4
	if i[4] == 3 && binary.BigEndian.Uint64(i[120:])&manyExtents != 0 {
		return binary.BigEndian.Uint64(i[24:])
	}
	return uint64(binary.BigEndian.Uint32(i[76:]))
}

// data is the part of the inode that holds data or locates it.
func (i rawInode) data() []byte {
	start := 100
	if i[4] == 3 {
		start = 176
	}
	if end := start + int(i[82])*8; end > start && end < len(i) {
		return i[start:end]
	}
	return i[start:]
}
