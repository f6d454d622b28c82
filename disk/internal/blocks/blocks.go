// Package blocks reads virtual disks that are stored in units of one size.
package blocks

import (
	"io"
	"sync"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/internal/source"
)

// Place is where a unit is stored.
type Place struct {
	// Stored is false for a unit of zeros.
	Stored bool
	// Packed is true for a compressed unit, which Unpack reads.
	Packed bool
	// Offset of the unit in the file, in bytes.
	Offset int64
	// Length of a compressed unit in the file.
	Length int64
	// Parts, if it is not 0, has a bit for each of the 32 equal parts of a stored unit, the first in bit 0: those whose bit is 0 are zero.
	Parts uint32
	// Run is the number of units from this one on that are known to be zero, 0 for a unit that is stored.
	Run int64
}

// Map finds the units of an image. Its methods may be called concurrently.
type Map interface {
	// Find returns where a unit is stored. The place is within the file.
	Find(unit int64) (Place, error)
	// Unpack fills p from a compressed unit. p is as long as the unit, or as its part before the end of the disk.
	Unpack(unit int64, place Place, p []byte) error
}

// Disk is a virtual disk in units. It implements disk.Image.
type Disk struct {
	info   disk.Info
	source source.Source
	units  Map

	lock sync.Mutex
	// last is the unit that was unpacked last to read a part of it.
	last       []byte
	lastNumber int64
}

// New returns the disk.
func New(info disk.Info, source source.Source, units Map) *Disk {
	return &Disk{info: info, source: source, units: units, lastNumber: -1}
}

// Info implements disk.Image.
func (d *Disk) Info() disk.Info { return d.info }

// ReadAt implements io.ReaderAt.
func (d *Disk) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 {
		return 0, d.info.Format.Errorf("read at negative offset %d", offset)
	}
	if offset >= d.info.Size {
		return 0, io.EOF
	}
	ended := int64(len(p)) > d.info.Size-offset
	if ended {
		p = p[:d.info.Size-offset]
	}
	for done := 0; done < len(p); {
		n, err := d.read(p[done:], offset+int64(done))
		if err != nil {
			return done, err
		}
		done += n
	}
	if ended {
		return len(p), io.EOF
	}
	return len(p), nil
}

// read fills the start of p: a unit, a run of zeros, or units that are stored one after another.
func (d *Disk) read(p []byte, offset int64) (int, error) {
	number, within := offset/d.info.Unit, offset%d.info.Unit
	place, err := d.units.Find(number)
	if err != nil {
		return 0, err
	}
	length := func(units int64) int64 { return min(units*d.info.Unit-within, int64(len(p))) }
	switch {
	case !place.Stored:
		n := length(max(place.Run, 1))
		clear(p[:n])
		return int(n), nil
	case place.Packed:
		n := length(1)
		return int(n), d.unpack(number, within, place, p[:n])
	case place.Parts != 0:
		return d.readParts(within, place, p)
	}
	units := int64(1)
	for length(units) < int64(len(p)) {
		following, err := d.units.Find(number + units)
		if err != nil {
			return 0, err
		}
		if !following.Stored || following.Packed || following.Parts != 0 || following.Offset != place.Offset+units*d.info.Unit {
			break
		}
		units++
	}
	n := length(units)
	return int(n), d.source.Read("data", p[:n], place.Offset+within)
}

// partsOfUnit is the number of bits of Place.Parts.
const partsOfUnit = 32

// readParts fills the start of p with parts that are stored, or with parts that are not.
func (d *Disk) readParts(within int64, place Place, p []byte) (int, error) {
	part := d.info.Unit / partsOfUnit
	stored := func(number int64) bool { return place.Parts>>number&1 != 0 }
	first := within / part
	end := first + 1
	for end < partsOfUnit && stored(end) == stored(first) {
		end++
	}
	p = p[:min(end*part-within, int64(len(p)))]
	if !stored(first) {
		clear(p)
		return len(p), nil
	}
	return len(p), d.source.Read("data", p, place.Offset+within)
}

func (d *Disk) unpack(number, within int64, place Place, p []byte) error {
	whole := min(d.info.Unit, d.info.Size-number*d.info.Unit)
	if int64(len(p)) == whole {
		return d.units.Unpack(number, place, p)
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.lastNumber != number {
		if d.last == nil {
			d.last = make([]byte, d.info.Unit)
		}
		d.lastNumber = -1
		if err := d.units.Unpack(number, place, d.last[:whole]); err != nil {
			return err
		}
		d.lastNumber = number
	}
	copy(p, d.last[within:])
	return nil
}

// longest is the number of units that NextData returns at most, so that it ends soon.
const longest = 8192

// NextData implements disk.Image.
func (d *Disk) NextData(offset int64) (disk.Range, error) {
	count := (d.info.Size + d.info.Unit - 1) / d.info.Unit
	number := max(offset, 0) / d.info.Unit
	for number < count {
		place, err := d.units.Find(number)
		if err != nil {
			return disk.Range{}, err
		}
		if place.Stored {
			break
		}
		number += max(place.Run, 1)
	}
	if number >= count {
		return disk.Range{}, io.EOF
	}
	end := number + 1
	for end < count && end-number < longest {
		place, err := d.units.Find(end)
		if err != nil {
			return disk.Range{}, err
		}
		if !place.Stored {
			break
		}
		end++
	}
	start := max(number*d.info.Unit, offset)
	return disk.Range{Offset: start, Length: min(end*d.info.Unit, d.info.Size) - start}, nil
}
