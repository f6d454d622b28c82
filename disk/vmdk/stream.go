package vmdk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/internal/ordered"
)

// Stream reads a streamOptimized VMDK from its first byte to its last, as an OVA delivers it.
//
// The grains of a stream ascend, each group is followed by its table, and the directory and the footer come last, as VMware writes them.
// Other images, such as those of QEMU with their tables in front, are read with Open.
type Stream struct {
	header
	reader io.Reader
	// sector is the number of the next sector.
	sector int64
	// next is the first sector of the disk that the next grain may have.
	next uint64
	// group of the grains in table, which is the one that is to follow them.
	group int64
	table [tableEntries]uint32
	open  bool
	// directory is the one that is to follow the tables.
	directory []uint32
	// directoryAt is the sector of the directory once it was read.
	directoryAt int64
	// footer is true once the footer was read, and ended once the end of the stream was.
	footer, ended bool
}

// NewStream reads what precedes the grains.
func NewStream(r io.Reader) (*Stream, error) {
	s := &Stream{reader: r}
	first := make([]byte, sector)
	if err := s.read("header", first); err != nil {
		return nil, err
	}
	if isDescriptor(first) {
		// The rest is not needed to reject it.
		return nil, checkDescriptor(first, true)
	}
	h, err := decodeHeader(first)
	if err != nil {
		return nil, err
	}
	s.header = h
	if h.directoryOffset != footerAtEnd || !h.compressed() {
		return nil, notStream("the tables of this image precede its grains: it cannot be read as a stream, but from a file")
	}
	length, err := descriptorBytes(h)
	if err != nil {
		return nil, err
	}
	const maxOverhead = 1 << 20 / sector
	if h.overhead > maxOverhead || h.descriptorOffset == 0 || h.descriptorOffset > h.overhead || h.descriptorSize > h.overhead-h.descriptorOffset {
		return nil, disk.VMDK.Errorf("a descriptor of %d sectors at sector %d is not within the %d sectors (at most %d) before the grains", h.descriptorSize, h.descriptorOffset, h.overhead, maxOverhead)
	}
	rest := make([]byte, int64(h.overhead-1)*sector)
	if err := s.read("descriptor", rest); err != nil {
		return nil, err
	}
	start := int64(h.descriptorOffset-1) * sector
	if err := checkDescriptor(rest[start:start+length], false); err != nil {
		return nil, err
	}
	s.directory = make([]uint32, h.tables())
	return s, nil
}

// ErrNotStream is part of the error of an image that [Open] may read, and a Stream does not.
var ErrNotStream = errors.New("the image is no stream")

// streamError is the FormatError of an image that is no stream.
type streamError struct{ error }

func (e streamError) Is(target error) bool { return target == ErrNotStream }
func (e streamError) Unwrap() error        { return e.error }

func notStream(format string, arguments ...any) error {
	return streamError{disk.VMDK.Errorf(format, arguments...)}
}

// Size of the disk in bytes.
func (s *Stream) Size() int64 { return s.size() }

func (s *Stream) read(what string, p []byte) error {
	if _, err := io.ReadFull(s.reader, p); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return disk.VMDK.Errorf("truncated: the stream ends in the %s at sector %d", what, s.sector)
		}
		return fmt.Errorf("reading the %s: %w", what, err)
	}
	s.sector += int64(len(p)) / sector
	return nil
}

// batchBytes is the number of bytes of grains that are expanded together, so that grains that follow each other are one write.
const batchBytes = 512 << 10

// batch is the compressed grains that are expanded by one goroutine.
type batch struct {
	grains []grain
	// used are the filled grains; the rest are buffers.
	used int
	// data holds the expanded grains one after the other.
	data []byte
}

// grain is a compressed grain.
type grain struct {
	first uint64
	// sectors holds the marker, the compressed grain and padding.
	sectors    []byte
	compressed []byte
}

// Copy writes the disk to dst, which reads as zeros where Copy does not write, and reads the stream up to its end. dst holds parts of the
// disk when it returns an error.
func (s *Stream) Copy(ctx context.Context, dst io.WriterAt, options disk.Options) error {
	var done int64
	count := max(batchBytes/s.grainBytes(), 1)
	// As in disk.Copy: goroutines that wait here cost less than threads that wait for the lock of the file.
	var writing sync.Mutex
	return ordered.Work[batch]{
		Workers: options.WorkersOrDefault(),
		New:     func() *batch { return &batch{grains: make([]grain, count), data: make([]byte, count*s.grainBytes())} },
		Next:    s.nextBatch,
		Do: func(b *batch) error {
			for i := range b.used {
				if err := decodeGrain(s.header, b.grains[i].compressed, b.grains[i].first, s.expanded(b, i, i+1)); err != nil {
					return err
				}
			}
			writing.Lock()
			defer writing.Unlock()
			return s.write(dst, b)
		},
		Deliver: func(b *batch) error {
			done += int64(b.used) * s.grainBytes()
			if options.Progress != nil {
				options.Progress(done)
			}
			return nil
		},
	}.Run(ctx)
}

// expanded returns where the grains of a batch from one to before another are expanded to. The last grain of a disk may be shorter.
func (s *Stream) expanded(b *batch, from, to int) []byte {
	last := min(s.grainBytes(), s.size()-int64(b.grains[to-1].first)*sector)
	return b.data[int64(from)*s.grainBytes() : int64(to-1)*s.grainBytes()+last]
}

// write writes the expanded grains of a batch, those that follow each other on the disk together.
func (s *Stream) write(dst io.WriterAt, b *batch) error {
	for from := 0; from < b.used; {
		to := from + 1
		for to < b.used && b.grains[to].first == b.grains[to-1].first+s.grain {
			to++
		}
		if err := disk.WriteNonzero(dst, s.expanded(b, from, to), int64(b.grains[from].first)*sector); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// nextBatch reads up to as many grains as a batch has. It returns false if there are none.
func (s *Stream) nextBatch(b *batch) (bool, error) {
	for b.used = 0; b.used < len(b.grains) && !s.ended; b.used++ {
		more, err := s.nextGrain(&b.grains[b.used])
		if err != nil {
			return false, err
		}
		if !more {
			s.ended = true
			break
		}
	}
	return b.used > 0, nil
}

// nextGrain reads up to the next grain. It returns false at the end of the stream.
func (s *Stream) nextGrain(g *grain) (bool, error) {
	for {
		var first [sector]byte
		at := s.sector
		if err := s.read("marker", first[:]); err != nil {
			return false, err
		}
		m := decodeMarker(first[:])
		if m.size != 0 {
			return true, s.readGrain(g, m, at, first[:])
		}
		switch m.kind {
		case markerTable:
			if err := s.readTable(m); err != nil {
				return false, err
			}
		case markerDirectory:
			if err := s.readDirectory(m); err != nil {
				return false, err
			}
		case markerFooter:
			if err := s.readFooter(m); err != nil {
				return false, err
			}
		case markerEndOfStream:
			if !s.footer {
				return false, disk.VMDK.Errorf("truncated: the stream ends at sector %d before its footer", at)
			}
			return false, nil
		default:
			return false, disk.VMDK.Errorf("unknown marker %d at sector %d", m.kind, at)
		}
	}
}

func (s *Stream) readGrain(g *grain, m marker, at int64, first []byte) error {
	switch {
	case m.value%s.grain != 0 || m.value >= s.capacity:
		return disk.VMDK.Errorf("the grain at sector %d is marked as that of sector %d, which is not a grain of the disk", at, m.value)
	case m.value < s.next:
		return notStream("the grain of sector %d follows a later one: it cannot be read as a stream, but from a file", m.value)
	case s.directoryAt != 0:
		return disk.VMDK.Errorf("the grain of sector %d follows the grain directory", m.value)
	case at > int64(^uint32(0)):
		return disk.VMDK.Errorf("the grain of sector %d is at sector %d, which a grain table cannot name", m.value, at)
	}
	if err := checkGrainSize(s.header, m); err != nil {
		return err
	}
	s.next = m.value + s.grain
	number := int64(m.value / s.grain)
	if s.open && s.group != number/tableEntries {
		return notStream("no grain table follows the grains before sector %d: it cannot be read as a stream, but from a file", at)
	}
	s.open, s.group = true, number/tableEntries
	s.table[number%tableEntries] = uint32(at)

	length := markerBytes + int(m.size)
	padded := (length + sector - 1) / sector * sector
	if cap(g.sectors) < padded {
		g.sectors = make([]byte, padded)
	}
	g.first = m.value
	whole := g.sectors[:padded]
	copy(whole, first)
	if err := s.read("grain", whole[sector:]); err != nil {
		return err
	}
	g.compressed = whole[markerBytes:length]
	return nil
}

// metadata reads what follows a marker.
func (s *Stream) metadata(what string, m marker, length int64) ([]byte, error) {
	if padded := (length + sector - 1) / sector; m.value != uint64(padded) {
		return nil, disk.VMDK.Errorf("the %s at sector %d has %d sectors instead of %d", what, s.sector, m.value, padded)
	}
	b := make([]byte, int64(m.value)*sector)
	return b, s.read(what, b)
}

func (s *Stream) readTable(m marker) error {
	at := s.sector
	b, err := s.metadata("grain table", m, tableBytes)
	if err != nil {
		return err
	}
	if at > int64(^uint32(0)) {
		return disk.VMDK.Errorf("the grain table at sector %d cannot be named by a directory", at)
	}
	for i, want := range s.table {
		if got := binary.LittleEndian.Uint32(b[4*i:]); got != want {
			return disk.VMDK.Errorf("entry %d of the grain table at sector %d is %d instead of %d", i, at, got, want)
		}
	}
	if s.open {
		s.directory[s.group] = uint32(at)
	}
	s.open, s.table = false, [tableEntries]uint32{}
	return nil
}

func (s *Stream) readDirectory(m marker) error {
	at := s.sector
	b, err := s.metadata("grain directory", m, s.directoryBytes())
	if err != nil {
		return err
	}
	if s.open {
		return notStream("no grain table follows the grains before sector %d: it cannot be read as a stream, but from a file", at)
	}
	for i, want := range s.directory {
		// An entry may name a table of zeros.
		if got := binary.LittleEndian.Uint32(b[4*i:]); got != want && want != 0 {
			return disk.VMDK.Errorf("entry %d of the grain directory is %d instead of %d", i, got, want)
		}
	}
	s.directoryAt = at
	return nil
}

func (s *Stream) readFooter(m marker) error {
	b, err := s.metadata("footer", m, sector)
	if err != nil {
		return err
	}
	h, err := decodeHeader(b)
	if err != nil {
		return err
	}
	if err := sameDisk(s.header, h); err != nil {
		return err
	}
	if s.directoryAt == 0 || h.directoryOffset != uint64(s.directoryAt) {
		return disk.VMDK.Errorf("the footer names the grain directory at sector %d, which is at sector %d", h.directoryOffset, s.directoryAt)
	}
	s.footer = true
	return nil
}
