package partition

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	mbrSector  = 512
	mbrEntries = 446
	mbrEntry   = 16
	// firstLogical is the number of the first logical partition.
	firstLogical = 5
)

var errDamagedMBR = errors.New("the partition table is damaged")

// slot is an entry of a table, in sectors.
type slot struct {
	kind         byte
	start, count int64
}

// table reads the entries of a sector. It returns ErrNone if it has none.
func table(r io.ReaderAt, offset int64) ([4]slot, error) {
	var slots [4]slot
	sector := make([]byte, mbrSector)
	if _, err := r.ReadAt(sector, offset); err != nil {
		return slots, fmt.Errorf("reading the partition table: %w", err)
	}
	if sector[510] != 0x55 || sector[511] != 0xAA {
		return slots, ErrNone
	}
	for i := range slots {
		e := sector[mbrEntries+i*mbrEntry:]
		if e[0]&0x7F != 0 {
			// It is a boot sector without a table.
			return slots, ErrNone
		}
		slots[i] = slot{kind: e[4], start: int64(binary.LittleEndian.Uint32(e[8:])), count: int64(binary.LittleEndian.Uint32(e[12:]))}
	}
	return slots, nil
}

func mbr(r io.ReaderAt, size int64) (found []Partition, more bool, err error) {
	if size < mbrSector {
		return nil, false, ErrNone
	}
	slots, err := table(r, 0)
	if err != nil {
		return nil, false, err
	}
	for i, s := range slots {
		if s.kind == 0 || s.count == 0 {
			continue
		}
		if s.extended() {
			logical, tooMany, err := logical(r, size, s.start)
			if err != nil {
				return nil, false, err
			}
			found, more = append(found, logical...), more || tooMany
			continue
		}
		p, err := s.partition(i+1, 0, size)
		if err != nil {
			return nil, false, err
		}
		found = append(found, p)
	}
	if len(found) == 0 {
		return nil, false, ErrNone
	}
	return found, more, nil
}

// logical follows the chain of the logical partitions of an extended one, each of which begins with a table of two entries.
func logical(r io.ReaderAt, size, extended int64) (found []Partition, more bool, err error) {
	for base := extended; ; {
		if len(found) == Max {
			return found, true, nil
		}
		slots, err := table(r, base*mbrSector)
		if errors.Is(err, ErrNone) {
			return nil, false, errDamagedMBR
		} else if err != nil {
			return nil, false, err
		}
		if slots[0].kind == 0 || slots[0].count == 0 {
			// An empty extended partition, or the end of the chain.
			return found, false, nil
		}
		p, err := slots[0].partition(firstLogical+len(found), base, size)
		if err != nil {
			return nil, false, err
		}
		found = append(found, p)
		if !slots[1].extended() {
			return found, false, nil
		}
		base = extended + slots[1].start
	}
}

func (s slot) extended() bool { return s.kind == 0x05 || s.kind == 0x0F || s.kind == 0x85 }

func (s slot) partition(number int, base, size int64) (Partition, error) {
	p := Partition{Number: number, Offset: (base + s.start) * mbrSector, Size: s.count * mbrSector}
	if s.start == 0 || p.Offset+p.Size > size {
		return p, fmt.Errorf("partition %d is outside of the disk", number)
	}
	switch s.kind {
	case 0xEF, 0x41:
		p.Purpose = Boot
	case 0x82:
		p.Purpose = Swap
	}
	return p, nil
}
