package ext

import (
	"encoding/binary"
	"fmt"

	"github.com/vmstencil/stencil/seal/internal/inode"
)

const (
	flagEncrypted  = 0x800
	flagExtents    = 0x80000
	flagInlineData = 0x10000000
)

// rawInode is an inode as it is stored, at least 128 bytes.
type rawInode []byte

func (f *FileSystem) inode(number uint64) (rawInode, error) {
	if number == 0 || number > f.inodes {
		return nil, fmt.Errorf("inode %d does not exist", number)
	}
	group, index := (number-1)/f.inodesPerGroup, (number-1)%f.inodesPerGroup
	descriptor := make([]byte, f.descriptorSize)
	if err := f.read(descriptor, f.descriptorOffset(group)); err != nil {
		return nil, fmt.Errorf("reading the descriptor of group %d: %w", group, err)
	}
	table := uint64(binary.LittleEndian.Uint32(descriptor[8:]))
	if f.incomp&incompat64Bit != 0 {
		table |= uint64(binary.LittleEndian.Uint32(descriptor[40:])) << 32
	}
	if table == 0 || table >= f.blocks {
		return nil, fmt.Errorf("the inodes of group %d are outside of the file system", group)
	}
	raw := make(rawInode, f.inodeSize)
	if err := f.read(raw, table*f.block+index*f.inodeSize); err != nil {
		return nil, fmt.Errorf("reading inode %d: %w", number, err)
	}
	return raw, nil
}

func (i rawInode) info() inode.Info {
	return inode.Info{Type: inode.TypeOf(binary.LittleEndian.Uint16(i)), Size: i.size()}
}

func (i rawInode) size() uint64 {
	return uint64(binary.LittleEndian.Uint32(i[4:])) | uint64(binary.LittleEndian.Uint32(i[108:]))<<32
}

func (i rawInode) flags() uint32 { return binary.LittleEndian.Uint32(i[32:]) }

// data are the 60 bytes that locate the blocks of the file, or hold the beginning of inline data.
func (i rawInode) data() []byte { return i[40:100] }

// inlineRest returns the part of inline data that does not fit into data: the value of the attribute system.data.
func (i rawInode) inlineRest() []byte {
	const (
		attributesMagic = 0xEA020000
		systemIndex     = 7
	)
	le := binary.LittleEndian
	if len(i) < 132 {
		return nil
	}
	start := 128 + int(le.Uint16(i[128:]))
	if start+4 > len(i) || le.Uint32(i[start:]) != attributesMagic {
		return nil
	}
	attributes := i[start+4:]
	for rest := attributes; len(rest) >= 16 && le.Uint32(rest) != 0; {
		length := int(rest[0])
		next := (16 + length + 3) &^ 3
		if next > len(rest) {
			return nil
		}
		if rest[1] == systemIndex && string(rest[16:16+length]) == "data" {
			offset, size := int(le.Uint16(rest[2:])), uint64(le.Uint32(rest[8:]))
			if offset > len(attributes) || size > uint64(len(attributes)-offset) {
				return nil
			}
			return attributes[offset : offset+int(size)]
		}
		rest = rest[next:]
	}
	return nil
}
