package xfs

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vmstencil/stencil/seal/internal/inode"
)

// Formats of the data of an inode.
const (
	formatLocal   = 1
	formatExtents = 2
	formatBtree   = 3
)

// leafOffset is the byte of a directory from which on it has hashes of names instead of names.
const leafOffset = 32 << 30

// maxBtreeLevel is more than any tree of extents has.
const maxBtreeLevel = 16

var errDamaged = errors.New("a directory is damaged")

// ReadDir visits the names of a directory.
func (f *FileSystem) ReadDir(number uint64, visit inode.Visit) error {
	raw, err := f.inode(number)
	switch {
	case err != nil:
		return err
	case raw.info().Type != inode.Directory:
		return fmt.Errorf("inode %d is not a directory", number)
	}
	d := directory{f: f, visit: visit, block: make([]byte, f.directoryBlock*f.block)}
	switch raw[5] {
	case formatLocal:
		return d.local(raw.data())
	case formatExtents:
		data, count := raw.data(), raw.extents()
		if count > uint64(len(data)/recordSize) {
			return errDamaged
		}
		err = d.records(data[:count*recordSize])
	case formatBtree:
		err = d.root(raw.data())
	default:
		return errDamaged
	}
	if err == nil && d.filled != 0 {
		return errDamaged
	}
	return err
}

// directory iterates over the blocks of a directory.
type directory struct {
	f     *FileSystem
	visit inode.Visit
	// block is a block of the directory; filled is how many blocks of the file system are in it, next the one that follows.
	block        []byte
	filled, next uint64
}

// recordSize is the size of an extent in bytes.
const recordSize = 16

// records visits the blocks of extents.
func (d *directory) records(records []byte) error {
	for ; len(records) >= recordSize; records = records[recordSize:] {
		high, low := binary.BigEndian.Uint64(records), binary.BigEndian.Uint64(records[8:])
		logical, start, count := high<<1>>10, high&(1<<9-1)<<43|low>>21, low&(1<<21-1)
		for b := range count {
			if logical+b >= leafOffset>>d.f.blockLog {
				break
			}
			if err := d.add(logical+b, start+b); err != nil {
				return err
			}
		}
	}
	return nil
}

// add reads a block of the file system into the block of the directory, whose parts may be in several extents.
func (d *directory) add(logical, start uint64) error {
	if part := logical % d.f.directoryBlock; part != d.filled || part != 0 && logical != d.next {
		return errDamaged
	}
	if err := d.f.readBlock(d.block[d.filled*d.f.block:][:d.f.block], start); err != nil {
		return err
	}
	d.next = logical + 1
	if d.filled++; d.filled < d.f.directoryBlock {
		return nil
	}
	d.filled = 0
	return d.entries()
}

// root visits the blocks of the B+ tree of extents whose root is in the inode.
func (d *directory) root(data []byte) error {
	if len(data) < 4 {
		return errDamaged
	}
	level := binary.BigEndian.Uint16(data)
	if level == 0 || level > maxBtreeLevel {
		return errDamaged
	}
	return d.children(data[4:], binary.BigEndian.Uint16(data[2:]), level)
}

// children visits the nodes to which the pointers behind the keys of a node lead, of a level above 0.
func (d *directory) children(data []byte, count, level uint16) error {
	most := len(data) / 16
	if int(count) > most {
		return errDamaged
	}
	for i := range int(count) {
		if err := d.node(binary.BigEndian.Uint64(data[(most+i)*8:]), level-1); err != nil {
			return err
		}
	}
	return nil
}

func (d *directory) node(number uint64, level uint16) error {
	node := make([]byte, d.f.block)
	if err := d.f.readBlock(node, number); err != nil {
		return err
	}
	var header int
	switch string(node[:4]) {
	case "BMAP":
		header = 24
	case "BMA3":
		header = 72
	default:
		return errDamaged
	}
	count := binary.BigEndian.Uint16(node[6:])
	switch {
	case binary.BigEndian.Uint16(node[4:]) != level:
		return errDamaged
	case level > 0:
		return d.children(node[header:], count, level)
	case header+int(count)*recordSize > len(node):
		return errDamaged
	}
	return d.records(node[header:][:int(count)*recordSize])
}

// local visits the names of a directory that is in its inode.
func (d *directory) local(data []byte) error {
	if len(data) < 6 {
		return errDamaged
	}
	count, wide := int(data[0]), data[1] != 0
	number := 4
	if wide {
		number = 8
	}
	rest := data[2:]
	if len(rest) < number {
		return errDamaged
	}
	rest = rest[number:]
	for range count {
		if len(rest) == 0 {
			return errDamaged
		}
		name := int(rest[0])
		at := 3 + name
		if d.f.ftype {
			at++
		}
		if len(rest) < at+number {
			return errDamaged
		}
		target := uint64(binary.BigEndian.Uint32(rest[at:]))
		if wide {
			target = binary.BigEndian.Uint64(rest[at:])
		}
		if err := d.name(rest[3:3+name], target); err != nil {
			return err
		}
		rest = rest[at+number:]
	}
	return nil
}

// minEntry is the size of a name of one character, in bytes.
const minEntry = 16

// entries visits the names of the block.
func (d *directory) entries() error {
	be := binary.BigEndian
	rest, header := d.block, 64
	switch string(rest[:4]) {
	case "XDD3":
	case "XD2D":
		header = 16
	case "XDB3", "XD2B":
		// A directory of one block ends with the hashes of its names.
		if rest[3] == 'B' {
			header = 16
		}
		end := uint64(len(rest) - 8)
		hashes := uint64(be.Uint32(rest[end:])) * 8
		if hashes > end {
			return errDamaged
		}
		rest = rest[:end-hashes]
	default:
		return errDamaged
	}
	// Blocks are multiples of 8 bytes, as are headers and hashes.
	if len(rest) < header {
		return errDamaged
	}
	for rest = rest[header:]; len(rest) > 0; {
		if be.Uint16(rest) == 0xFFFF {
			// It is not used. All lengths are multiples of 8.
			length := int(be.Uint16(rest[2:]))
			if length < 8 || length%8 != 0 || length > len(rest) {
				return errDamaged
			}
			rest = rest[length:]
			continue
		}
		if len(rest) < minEntry {
			return errDamaged
		}
		name := int(rest[8])
		length := 8 + 1 + name + 2
		if d.f.ftype {
			length++
		}
		if length = (length + 7) &^ 7; length > len(rest) {
			return errDamaged
		}
		if err := d.name(rest[9:9+name], be.Uint64(rest)); err != nil {
			return err
		}
		rest = rest[length:]
	}
	return nil
}

func (d *directory) name(name []byte, number uint64) error {
	if string(name) == "." || string(name) == ".." {
		return nil
	}
	return d.visit(string(name), number)
}
