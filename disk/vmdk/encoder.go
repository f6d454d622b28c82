package vmdk

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/internal/ordered"
)

// EncodeOptions select what is written.
type EncodeOptions struct {
	disk.Options
	// Encoding of the grains; empty is Fast.
	Encoding Encoding
	// CID is the content ID in the descriptor; 0 is fffffffe, "not set".
	CID uint32
	// Name is the file name in the descriptor; empty is "disk.vmdk". Readers ignore it. Letters, digits, "." "_" and "-".
	Name string
}

// Encoder writes a disk as a streamOptimized VMDK.
type Encoder struct {
	source  disk.Image
	options EncodeOptions
	size    int64
	head    []byte
	// encoders are as many as workers.
	encoders sync.Pool
}

// NewEncoder returns an encoder. Disks whose size is not a multiple of 512 bytes are extended by zeros.
func NewEncoder(source disk.Image, options EncodeOptions) (*Encoder, error) {
	size := source.Info().Size
	if size > disk.MaxSize {
		return nil, disk.VMDK.Errorf("a disk of %d bytes is larger than the limit of %d", size, disk.MaxSize)
	}
	switch options.Encoding {
	case "":
		options.Encoding = Fast
	case Fast, Best, Uncompressed, Stored:
	default:
		return nil, fmt.Errorf("unknown encoding %q: choose %q, %q, %q or %q", options.Encoding, Fast, Best, Uncompressed, Stored)
	}
	if options.CID == 0 {
		options.CID = 0xfffffffe
	}
	if options.Name == "" {
		options.Name = "disk.vmdk"
	}
	if len(options.Name) > 255 {
		return nil, fmt.Errorf("the file name has %d bytes: at most 255 are allowed", len(options.Name))
	}
	for _, c := range []byte(options.Name) {
		if !bytes.ContainsRune([]byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"), rune(c)) {
			return nil, fmt.Errorf("the file name %q has other characters than letters, digits, \".\", \"_\" and \"-\"", options.Name)
		}
	}
	e := &Encoder{source: source, options: options, size: size}
	e.head = e.makeHead()
	return e, nil
}

func (e *Encoder) header() header {
	return header{
		version:          3,
		flags:            flagNewlines | flagCompressed | flagMarkers,
		capacity:         uint64((e.size + sector - 1) / sector),
		grain:            grainSectors,
		descriptorOffset: 1,
		descriptorSize:   descriptorSectors,
		directoryOffset:  footerAtEnd,
		overhead:         firstGrain,
		compression:      compressDeflate,
	}
}

// makeHead returns what precedes the grains.
func (e *Encoder) makeHead() []byte {
	head := make([]byte, firstGrain*sector)
	h := e.header()
	copy(head, h.encode())
	copy(head[sector:(1+descriptorSectors)*sector], descriptor(h.capacity, uint64(e.options.CID), e.options.Name))
	return head
}

// tail returns what follows the grains: directory, footer, end.
func (e *Encoder) tail(l *Layout) []byte {
	var b bytes.Buffer
	b.Write(encodeMarker(markerDirectory, uint64(l.directorySectors())))
	directory := make([]byte, l.directorySectors()*sector)
	for i, table := range l.tables {
		binary.LittleEndian.PutUint32(directory[4*i:], table)
	}
	b.Write(directory)
	h := e.header()
	h.directoryOffset = uint64(l.end + 1)
	b.Write(encodeMarker(markerFooter, 1))
	b.Write(h.encode())
	b.Write(encodeMarker(markerEndOfStream, 0))
	return b.Bytes()
}

// Layout returns the layout of the stream. With Stored it does not read the disk; with other encodings it compresses all data and
// discards the result.
func (e *Encoder) Layout(ctx context.Context) (*Layout, error) {
	if e.options.Encoding == Stored {
		return e.storedLayout()
	}
	return e.write(ctx, discard{}, newLayout(e.size), 0, nil)
}

// Write writes the stream in one pass and returns its layout.
func (e *Encoder) Write(ctx context.Context, w io.Writer) (*Layout, error) {
	if _, err := w.Write(e.head); err != nil {
		return nil, fmt.Errorf("writing the header: %w", err)
	}
	layout, err := e.write(ctx, w, newLayout(e.size), 0, nil)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(e.tail(layout)); err != nil {
		return nil, fmt.Errorf("writing the end of the stream: %w", err)
	}
	return layout, nil
}

// discard is where Layout writes.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// job is a part of a group: up to jobBytes of the disk.
type job struct {
	span disk.Range
	// grains holds the first sectors of the grains, without those of zeros, and ends their ends in output.
	grains []int64
	ends   []int
	data   []byte
	output []byte
}

const (
	jobGrains = 8
	jobBytes  = jobGrains * grainBytes
)

// newJob has room for grains that do not compress.
func newJob() *job {
	return &job{data: make([]byte, jobBytes), output: make([]byte, 0, jobGrains*storedSectors*sector)}
}

// write writes the groups from a first one on, and adds them to a layout, which is to be like another one if that is not nil.
func (e *Encoder) write(ctx context.Context, w io.Writer, layout *Layout, first int, like *Layout) (*Layout, error) {
	next, stop := iter.Pull2(disk.Spans(from{e.source, int64(first) * groupBytes}, grainBytes, jobBytes))
	defer stop()
	g := &groups{writer: w, layout: layout, like: like, number: first}
	var done int64
	err := ordered.Work[job]{
		Workers: e.options.WorkersOrDefault(),
		New:     newJob,
		Next: func(j *job) (bool, error) {
			span, err, more := next()
			if !more || err != nil {
				return false, err
			}
			j.span = span
			return true, nil
		},
		Do: e.encode,
		Deliver: func(j *job) error {
			done += j.span.Length
			if e.options.Progress != nil {
				e.options.Progress(done)
			}
			return g.add(j)
		},
	}.Run(ctx)
	if err != nil {
		return nil, err
	}
	return layout, g.finish(len(layout.tables))
}

// from is an image whose data begins at an offset.
type from struct {
	disk.Image
	offset int64
}

func (f from) NextData(offset int64) (disk.Range, error) {
	return f.Image.NextData(max(offset, f.offset))
}

// encode reads and compresses the grains of a job. Stored writes grains of zeros, so that the size does not depend on the data.
func (e *Encoder) encode(j *job) error {
	encoder, ok := e.encoders.Get().(*grainEncoder)
	if !ok {
		encoder = newGrainEncoder(e.options.Encoding)
	}
	defer e.encoders.Put(encoder)
	length := (j.span.Length + grainBytes - 1) / grainBytes * grainBytes
	data := j.data[:length]
	if err := disk.ReadFull(e.source, data[:j.span.Length], j.span.Offset); err != nil {
		return err
	}
	clear(data[j.span.Length:])
	j.grains, j.ends, j.output = j.grains[:0], j.ends[:0], j.output[:0]
	for start := int64(0); start < length; start += grainBytes {
		grain := data[start : start+grainBytes]
		if e.options.Encoding != Stored && disk.IsZero(grain) {
			continue
		}
		first := (j.span.Offset + start) / sector
		output, err := encoder.append(j.output, uint64(first), grain)
		if err != nil {
			return fmt.Errorf("compressing the grain of sector %d: %w", first, err)
		}
		j.output = output
		j.grains, j.ends = append(j.grains, first), append(j.ends, len(output))
	}
	return nil
}

// groups writes grains in order, and the table after each group.
type groups struct {
	writer io.Writer
	layout *Layout
	like   *Layout
	// number of the group that is being written.
	number int
	// sectors of its grains so far.
	sectors int64
	table   [tableEntries]uint32
}

func (g *groups) add(j *job) error {
	if err := g.finish(int(j.span.Offset / groupBytes)); err != nil {
		return err
	}
	start := g.layout.end + g.sectors
	if start+int64(len(j.output))/sector >= maxSectors {
		return disk.VMDK.Errorf("the disk has more data than the %d bytes that a stream can hold", maxSectors*sector)
	}
	begin := 0
	for i, first := range j.grains {
		g.table[first/grainSectors%tableEntries] = uint32(start + int64(begin)/sector)
		begin = j.ends[i]
	}
	g.sectors += int64(len(j.output)) / sector
	if _, err := g.writer.Write(j.output); err != nil {
		return fmt.Errorf("writing grains: %w", err)
	}
	return nil
}

// finish writes the table of the current group and continues with another one; those between have no grains.
func (g *groups) finish(next int) error {
	for g.number < next {
		written := g.sectors
		if err := g.layout.add(g.number, written); err != nil {
			return err
		}
		if g.like != nil && (g.like.tables[g.number] != g.layout.tables[g.number] || g.like.starts[g.number] != g.layout.starts[g.number]) {
			return ErrChanged
		}
		if written > 0 {
			b := make([]byte, 0, sector+tableBytes)
			b = append(b, encodeMarker(markerTable, tableSectors)...)
			for _, entry := range g.table {
				b = binary.LittleEndian.AppendUint32(b, entry)
			}
			if _, err := g.writer.Write(b); err != nil {
				return fmt.Errorf("writing a grain table: %w", err)
			}
			g.table, g.sectors = [tableEntries]uint32{}, 0
		}
		g.number++
	}
	return nil
}
