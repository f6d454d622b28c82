// Package ext reads directories and inodes of ext2, ext3 and ext4: https://docs.kernel.org/filesystems/ext4/. It reads no data of
// files. A block is read at a time, so that memory does not depend on what the file system claims; how much is read is bounded by
// the caller's reader.
package ext

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/vmstencil/stencil/seal/internal/inode"
)

const (
	superblockOffset = 1024
	superblockSize   = 1024
	magic            = 0xEF53
	rootInode        = 2

	compatSparseSuper2 = 0x200

	roCompatSparseSuper = 0x1

	incompatFiletype  = 0x2
	incompatRecover   = 0x4
	incompatMetaBG    = 0x10
	incompat64Bit     = 0x80
	incompatSupported = incompatFiletype | incompatRecover | incompatMetaBG | 0x40 /* extents */ | incompat64Bit | 0x100 /* mmp */ |
		0x200 /* flex_bg */ | 0x400 /* ea_inode */ | 0x2000 /* metadata_csum_seed */ | 0x4000 /* large_dir */ | 0x8000 /* inline_data */ |
		0x10000 /* encrypt */ | 0x20000 /* casefold */
)

// FileSystem is an opened file system.
type FileSystem struct {
	r                  io.ReaderAt
	block              uint64
	blocks             uint64
	inodes             uint64
	firstDataBlock     uint64
	blocksPerGroup     uint64
	inodesPerGroup     uint64
	inodeSize          uint64
	descriptorSize     uint64
	firstMetaBG        uint64
	compat, ro, incomp uint32
	backupGroups       [2]uint32
}

// Is reports whether a superblock of ext2, ext3 or ext4 begins at byte 1024.
func Is(r io.ReaderAt) bool {
	var b [2]byte
	_, err := r.ReadAt(b[:], superblockOffset+56)
	return err == nil && binary.LittleEndian.Uint16(b[:]) == magic
}

// Open reads the superblock. The file system begins at byte 0 of the reader.
func Open(r io.ReaderAt) (*FileSystem, error) {
	sb := make([]byte, superblockSize)
	if _, err := r.ReadAt(sb, superblockOffset); err != nil {
		return nil, fmt.Errorf("reading the superblock: %w", err)
	}
	le := binary.LittleEndian
	logBlock := le.Uint32(sb[24:])
	if le.Uint16(sb[56:]) != magic || logBlock > 6 {
		return nil, errors.New("the superblock is damaged")
	}
	f := &FileSystem{
		r:              r,
		block:          1024 << logBlock,
		blocks:         uint64(le.Uint32(sb[4:])),
		inodes:         uint64(le.Uint32(sb[0:])),
		firstDataBlock: uint64(le.Uint32(sb[20:])),
		blocksPerGroup: uint64(le.Uint32(sb[32:])),
		inodesPerGroup: uint64(le.Uint32(sb[40:])),
		inodeSize:      128,
		descriptorSize: 32,
		firstMetaBG:    uint64(le.Uint32(sb[260:])),
		backupGroups:   [2]uint32{le.Uint32(sb[588:]), le.Uint32(sb[592:])},
	}
	if le.Uint32(sb[76:]) > 0 {
		f.inodeSize = uint64(le.Uint16(sb[88:]))
		f.compat, f.incomp, f.ro = le.Uint32(sb[92:]), le.Uint32(sb[96:]), le.Uint32(sb[100:])
	}
	if f.incomp&incompat64Bit != 0 {
		f.descriptorSize = uint64(le.Uint16(sb[254:]))
		f.blocks |= uint64(le.Uint32(sb[336:])) << 32
	}
	switch unsupported := f.incomp &^ incompatSupported; {
	case unsupported != 0:
		return nil, fmt.Errorf("features %#x are not supported", unsupported)
	case f.blocksPerGroup == 0, f.inodesPerGroup == 0, f.inodeSize < 128, f.inodeSize > f.block,
		f.descriptorSize < 32, f.descriptorSize > f.block, f.incomp&incompat64Bit != 0 && f.descriptorSize < 64:
		return nil, errors.New("the superblock is damaged")
	}
	return f, nil
}

// Root is the number of the inode of the root directory.
func (f *FileSystem) Root() uint64 { return rootInode }

// Dirty returns what is not yet in place, and an empty string if the file system was unmounted.
func (f *FileSystem) Dirty() string {
	if f.incomp&incompatRecover != 0 {
		return "its journal was not replayed"
	}
	return ""
}

// Stat returns what an inode contains.
func (f *FileSystem) Stat(number uint64) (inode.Info, error) {
	raw, err := f.inode(number)
	if err != nil {
		return inode.Info{}, err
	}
	return raw.info(), nil
}

// descriptorOffset returns the byte at which the descriptor of a group begins.
func (f *FileSystem) descriptorOffset(group uint64) uint64 {
	perBlock := f.block / f.descriptorSize
	block, at := group/perBlock, group%perBlock*f.descriptorSize
	if f.incomp&incompatMetaBG == 0 || block < f.firstMetaBG {
		return (f.firstDataBlock+1+block)*f.block + at
	}
	// With meta_bg, each block of descriptors is in the first group that it describes.
	first := block * perBlock
	location := f.firstDataBlock + first*f.blocksPerGroup
	if f.hasSuper(first) {
		location++
	}
	return location*f.block + at
}

// hasSuper reports whether a group begins with a copy of the superblock.
func (f *FileSystem) hasSuper(group uint64) bool {
	switch {
	case group == 0:
		return true
	case f.compat&compatSparseSuper2 != 0:
		return group == uint64(f.backupGroups[0]) || group == uint64(f.backupGroups[1])
	case group == 1, f.ro&roCompatSparseSuper == 0:
		return true
	}
	for _, base := range []uint64{3, 5, 7} {
		power := base
		for power < group {
			power *= base
		}
		if power == group {
			return true
		}
	}
	return false
}

// readBlock reads a block of the file system into a buffer of its size.
func (f *FileSystem) readBlock(b []byte, number uint64) error {
	if number == 0 || number >= f.blocks {
		return fmt.Errorf("block %d is outside of the file system", number)
	}
	return f.read(b, number*f.block)
}

func (f *FileSystem) read(b []byte, offset uint64) error {
	if offset > 1<<62 {
		return fmt.Errorf("byte %d is outside of the file system", offset)
	}
	_, err := f.r.ReadAt(b, int64(offset))
	return err
}
