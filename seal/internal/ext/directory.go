package ext

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vmstencil/stencil/seal/internal/inode"
)

// Blocks of a directory in the inode: 12 direct ones, then one of each level of indirection.
const directBlocks = 12

// maxExtentDepth is the depth of extent trees that the kernel accepts.
const maxExtentDepth = 5

// ReadDir visits the names of a directory.
func (f *FileSystem) ReadDir(number uint64, visit inode.Visit) error {
	raw, err := f.inode(number)
	switch {
	case err != nil:
		return err
	case raw.info().Type != inode.Directory:
		return fmt.Errorf("inode %d is not a directory", number)
	case raw.flags()&flagEncrypted != 0:
		return errors.New("the directory is encrypted")
	case raw.flags()&flagInlineData != 0:
		// The first four bytes are the inode of the parent directory.
		if err := f.entries(raw.data()[4:], visit); err != nil {
			return err
		}
		return f.entries(raw.inlineRest(), visit)
	}
	d := directory{f: f, visit: visit, blocks: (raw.size() + f.block - 1) / f.block, buffer: make([]byte, f.block)}
	if raw.flags()&flagExtents != 0 {
		return d.extents(raw.data(), maxExtentDepth+1)
	}
	return d.indirect(raw.data())
}

// directory iterates over the blocks of a directory. Those of a hash tree need no other treatment: its nodes have the form of blocks
// without names.
type directory struct {
	f      *FileSystem
	visit  inode.Visit
	blocks uint64
	buffer []byte
}

func (d *directory) block(number uint64) error {
	if err := d.f.readBlock(d.buffer, number); err != nil {
		return err
	}
	return d.f.entries(d.buffer, d.visit)
}

// extents visits the blocks of a node of an extent tree, whose depth is less than below.
func (d *directory) extents(node []byte, below uint16) error {
	const header, entry = 12, 12
	le := binary.LittleEndian
	count, depth := int(le.Uint16(node[2:])), le.Uint16(node[6:])
	if le.Uint16(node) != 0xF30A || depth >= below || header+count*entry > len(node) {
		return errors.New("an extent tree is damaged")
	}
	for i := range count {
		e := node[header+i*entry:]
		if depth > 0 {
			child := make([]byte, d.f.block)
			if err := d.f.readBlock(child, uint64(le.Uint32(e[4:]))|uint64(le.Uint16(e[8:]))<<32); err != nil {
				return err
			}
			if err := d.extents(child, depth); err != nil {
				return err
			}
			continue
		}
		logical, length := uint64(le.Uint32(e)), uint64(le.Uint16(e[4:]))
		start := uint64(le.Uint32(e[8:])) | uint64(le.Uint16(e[6:]))<<32
		if length > 32768 {
			// The extent is not initialized.
			continue
		}
		for b := uint64(0); b < length && logical+b < d.blocks; b++ {
			if err := d.block(start + b); err != nil {
				return err
			}
		}
	}
	return nil
}

// indirect visits the blocks of a directory of ext2 or ext3.
func (d *directory) indirect(pointers []byte) error {
	for i := range directBlocks + 3 {
		level := max(0, i-directBlocks+1)
		if err := d.pointer(binary.LittleEndian.Uint32(pointers[i*4:]), level); err != nil {
			return err
		}
	}
	return nil
}

// pointer visits the blocks to which a block number leads over levels of indirection.
func (d *directory) pointer(number uint32, level int) error {
	switch {
	case number == 0:
		return nil
	case level == 0:
		return d.block(uint64(number))
	}
	pointers := make([]byte, d.f.block)
	if err := d.f.readBlock(pointers, uint64(number)); err != nil {
		return err
	}
	for ; len(pointers) >= 4; pointers = pointers[4:] {
		if err := d.pointer(binary.LittleEndian.Uint32(pointers), level-1); err != nil {
			return err
		}
	}
	return nil
}

// entries visits the names in a block of a directory.
func (f *FileSystem) entries(block []byte, visit inode.Visit) error {
	le := binary.LittleEndian
	for len(block) > 0 {
		if len(block) < 8 {
			return errors.New("a directory is damaged")
		}
		length, name := int(le.Uint16(block[4:])), int(block[6])
		if f.block == 65536 && (length == 0 || length == 65535) {
			length = 65536
		}
		if length < 8 || length%4 != 0 || length > len(block) || 8+name > length {
			return errors.New("a directory is damaged")
		}
		if number := le.Uint32(block); number != 0 {
			if entry := string(block[8 : 8+name]); entry != "." && entry != ".." {
				if err := visit(entry, uint64(number)); err != nil {
					return err
				}
			}
		}
		block = block[length:]
	}
	return nil
}
