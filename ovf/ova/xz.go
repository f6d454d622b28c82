package ova

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// dictionaryGuard passes an xz stream on and fails before a block whose dictionary exceeds [MaxDictionaryBytes], because the decompressor
// allocates what the block declares. It follows the structure of the format (The .xz File Format 1.2, and the chunks of LZMA2) without decompressing.
// What it does not recognize it passes on, for the decompressor to reject.
type dictionaryGuard struct {
	in *bufio.Reader
	// pending are bytes that are passed on before next is called.
	pending int64
	next    func() error
	// check is the size of the check after each block.
	check int64
	// block is the number of bytes of the current block, for its padding.
	block int64
}

var errDictionary = fmt.Errorf("the xz dictionary is larger than %d MiB; compress the file with xz -9 or less", MaxDictionaryBytes>>20)

var errFilters = errors.New("the xz file uses other filters than LZMA2; compress it without filters")

func newDictionaryGuard(r io.Reader) *dictionaryGuard {
	g := &dictionaryGuard{in: bufio.NewReaderSize(r, 64<<10)}
	g.next = g.stream
	return g
}

func (g *dictionaryGuard) Read(p []byte) (int, error) {
	for g.pending == 0 {
		if g.next == nil {
			return g.in.Read(p)
		}
		if err := g.next(); err != nil {
			return 0, err
		}
	}
	if int64(len(p)) > g.pending {
		p = p[:g.pending]
	}
	n, err := g.in.Read(p)
	g.pending -= int64(n)
	return n, err
}

// peek returns the next bytes, and nil if there are fewer: the decompressor then reports the end.
func (g *dictionaryGuard) peek(n int) ([]byte, error) {
	b, err := g.in.Peek(n)
	if errors.Is(err, io.EOF) {
		g.next = nil
		return nil, nil
	}
	return b, err
}

// checkSizes are the sizes of the checks by their number.
var checkSizes = [16]int64{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}

// stream reads the header of a stream, or padding of four zeros between streams.
func (g *dictionaryGuard) stream() error {
	b, err := g.peek(4)
	if b == nil {
		return err
	}
	if b[0] == 0 {
		g.pending = 4
		return nil
	}
	if b, err = g.peek(12); b == nil {
		return err
	}
	g.check = checkSizes[b[7]&15]
	g.pending, g.next = 12, g.header
	return nil
}

// header reads the header of a block, or of the index.
func (g *dictionaryGuard) header() error {
	b, err := g.peek(1)
	if b == nil {
		return err
	}
	if b[0] == 0 {
		g.pending, g.next, g.block = 1, g.index(), 1
		return nil
	}
	size := (int(b[0]) + 1) * 4
	if b, err = g.peek(size); b == nil {
		return err
	}
	if dictionary, found := dictionary(b); !found {
		return errFilters
	} else if dictionary > MaxDictionaryBytes {
		return errDictionary
	}
	g.pending, g.next, g.block = int64(size), g.chunk, 0
	return nil
}

// dictionary returns the size of the dictionary that a block header declares for LZMA2 as the only filter.
func dictionary(header []byte) (uint64, bool) {
	flags, rest := header[1], header[2:]
	if flags&3 != 0 {
		return 0, false
	}
	for _, flag := range []byte{0x40, 0x80} {
		if flags&flag != 0 {
			for len(rest) > 0 && rest[0]&0x80 != 0 {
				rest = rest[1:]
			}
			if len(rest) > 0 {
				rest = rest[1:]
			}
		}
	}
	if len(rest) < 3 || rest[0] != 0x21 || rest[1] != 1 || rest[2] > 40 {
		return 0, false
	}
	bits := uint64(rest[2])
	return (2 | bits&1) << (bits/2 + 11), true
}

// chunk reads the header of a chunk of LZMA2.
func (g *dictionaryGuard) chunk() error {
	b, err := g.peek(1)
	if b == nil {
		return err
	}
	var size int64
	switch control := b[0]; {
	case control == 0:
		// The end of the block, its padding and its check.
		g.block++
		g.pending, g.next = 1+(4-g.block%4)%4+g.check, g.header
		return nil
	case control < 0x80:
		if b, err = g.peek(3); b == nil {
			return err
		}
		size = 3 + int64(b[1])<<8 + int64(b[2]) + 1
	default:
		if b, err = g.peek(5); b == nil {
			return err
		}
		size = 5 + int64(b[3])<<8 + int64(b[4]) + 1
		if control >= 0xc0 {
			size++
		}
	}
	g.pending = size
	g.block += size
	return nil
}

// index returns a function that reads the index number by number, and then skips its padding, its check and the footer of the stream.
func (g *dictionaryGuard) index() func() error {
	// The number of records, and then two numbers for each.
	numbers, counted := uint64(1), false
	return func() error {
		if numbers == 0 {
			g.pending, g.next = (4-g.block%4)%4+4+12, g.stream
			return nil
		}
		value, shift := uint64(0), 0
		for n := 1; ; n++ {
			b, err := g.peek(n)
			if b == nil {
				return err
			}
			value |= uint64(b[n-1]&0x7f) << shift
			shift += 7
			if b[n-1]&0x80 == 0 || n == 9 {
				g.pending = int64(n)
				break
			}
		}
		g.block += g.pending
		if numbers--; !counted {
			numbers, counted = 2*value, true
		}
		return nil
	}
}
