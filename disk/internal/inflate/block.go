package inflate

import "encoding/binary"

// input reads bits, the lowest of a byte first.
type input struct {
	src []byte
	pos int
	// buffer holds count bits, and above them bits that are read again.
	buffer uint64
	count  uint
}

// refill provides at least 56 bits, zeros after the end of the input.
func (in *input) refill() {
	if in.pos+8 <= len(in.src) {
		in.buffer |= binary.LittleEndian.Uint64(in.src[in.pos:]) << in.count
		in.pos += int((63 - in.count) >> 3)
		in.count |= 56
		return
	}
	// Bits above count may be set from the last refill.
	in.buffer &= 1<<in.count - 1
	for in.count < 56 {
		if in.pos < len(in.src) {
			in.buffer |= uint64(in.src[in.pos]) << in.count
		}
		in.pos++
		in.count += 8
	}
}

// take returns bits that refill has provided.
func (in *input) take(n uint) uint {
	value := uint(in.buffer & (1<<n - 1))
	in.buffer >>= n
	in.count -= n
	return value
}

// overrun returns whether more bits were taken than there are.
func (in *input) overrun() bool { return in.pos-int(in.count>>3) > len(in.src) }

// align drops the rest of a byte and returns the position of the next one.
func (in *input) align() int {
	in.take(in.count & 7)
	in.pos -= int(in.count >> 3)
	in.buffer, in.count = 0, 0
	return in.pos
}

// inflate returns the length of the data and the number of bytes read.
func (d *decoder) inflate(src, dst []byte) (written, read int, err error) {
	in := input{src: src}
	for final := false; !final; {
		in.refill()
		final = in.take(1) == 1
		switch in.take(2) {
		case 0:
			written, err = stored(&in, dst, written)
		case 1:
			d.fixed()
			written, err = d.block(&in, dst, written)
		case 2:
			if err = d.dynamic(&in); err == nil {
				written, err = d.block(&in, dst, written)
			}
		default:
			err = ErrCorrupt
		}
		if in.overrun() {
			return 0, 0, ErrTruncated
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return written, in.align(), nil
}

func stored(in *input, dst []byte, written int) (int, error) {
	pos := in.align()
	if len(in.src)-pos < 4 {
		return 0, ErrTruncated
	}
	length := int(binary.LittleEndian.Uint16(in.src[pos:]))
	if binary.LittleEndian.Uint16(in.src[pos+2:]) != ^uint16(length) {
		return 0, ErrCorrupt
	}
	in.pos += 4
	if len(in.src)-in.pos < length {
		return 0, ErrTruncated
	}
	if len(dst)-written < length {
		return 0, ErrTooLong
	}
	copy(dst[written:], in.src[in.pos:in.pos+length])
	in.pos += length
	return written + length, nil
}

// fixed makes the tables of RFC 1951, section 3.2.6.
func (d *decoder) fixed() {
	for i := range d.words {
		switch {
		case i < 144:
			d.words[i] = 8
		case i < 256:
			d.words[i] = 9
		case i < 280:
			d.words[i] = 7
		case i < literalCount:
			d.words[i] = 8
		default:
			d.words[i] = 5
		}
	}
	build(d.literals[:], literalBits, d.words[:literalCount], literals, false)
	build(d.distances[:], distanceBits, d.words[literalCount:], distances, false)
}

var lengthOrder = [lengthCount]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamic reads the tables of a block: RFC 1951, section 3.2.7.
func (d *decoder) dynamic(in *input) error {
	in.refill()
	literalWords, distanceWords, lengthWords := in.take(5)+257, in.take(5)+1, in.take(4)+4
	if literalWords > 286 || distanceWords > 30 {
		return ErrCorrupt
	}
	var words [lengthCount]uint8
	for _, symbol := range lengthOrder[:lengthWords] {
		if in.count < 3 {
			in.refill()
		}
		words[symbol] = uint8(in.take(3))
	}
	if !build(d.lengths[:], lengthBits, words[:], codes, false) {
		return ErrCorrupt
	}
	all := d.words[:literalWords+distanceWords]
	for i := 0; i < len(all); {
		in.refill()
		e := d.lengths[in.buffer&(1<<lengthBits-1)]
		in.take(e.bits())
		symbol := e.value()
		if symbol < 16 {
			all[i] = uint8(symbol)
			i++
			continue
		}
		var value uint8
		var repeat uint
		switch symbol {
		case 16:
			if i == 0 {
				return ErrCorrupt
			}
			value, repeat = all[i-1], 3+in.take(2)
		case 17:
			repeat = 3 + in.take(3)
		default:
			repeat = 11 + in.take(7)
		}
		if int(repeat) > len(all)-i {
			return ErrCorrupt
		}
		for range repeat {
			all[i] = value
			i++
		}
		if in.overrun() {
			return ErrTruncated
		}
	}
	if all[256] == 0 ||
		!build(d.literals[:], literalBits, all[:literalWords], literals, false) ||
		!build(d.distances[:], distanceBits, all[literalWords:], distances, true) {
		return ErrCorrupt
	}
	return nil
}

// fastInput and fastOutput are the bytes that one round of the fast loop may read and write at most: three literals or one match, which is
// copied in words of 8 bytes.
const (
	fastInput  = 16
	fastOutput = 3 + 258 + 8
)

// block decodes literals and matches up to the end of a block.
func (d *decoder) block(in *input, dst []byte, written int) (int, error) {
	// In registers.
	src, pos, buffer, count := in.src, in.pos, in.buffer, in.count
	lits, dists := &d.literals, &d.distances
	o := written
	for pos+fastInput <= len(src) && o+fastOutput <= len(dst) {
		buffer |= binary.LittleEndian.Uint64(src[pos:]) << (count & 63)
		pos += int((63 - count) >> 3)
		count |= 56
		e := lits[buffer&(1<<literalBits-1)]
		// Each literal of the main table has at most 11 bits: three of them leave 23.
		for range 2 {
			if e&kindLiteral == 0 {
				break
			}
			buffer >>= e & 63
			count -= uint(e & 63)
			dst[o] = byte(e >> 16)
			o++
			e = lits[buffer&(1<<literalBits-1)]
		}
		if e.has(kindSubtable) {
			buffer >>= literalBits
			count -= literalBits
			e = lits[(e.value()+uint(buffer)&(1<<e.extra()-1))%literalTable]
		}
		buffer >>= e & 63
		count -= uint(e & 63)
		if e&kindLiteral != 0 {
			dst[o] = byte(e >> 16)
			o++
			continue
		}
		if e.has(kindSpecial) {
			*in = input{src, pos, buffer, count}
			if e.has(kindEnd) {
				return o, nil
			}
			return 0, ErrCorrupt
		}
		extra := e.extra()
		length := int(e.value()) + int(buffer&(1<<extra-1))
		buffer >>= extra
		count -= extra
		if count < maxBits+13 {
			buffer |= binary.LittleEndian.Uint64(src[pos:]) << (count & 63)
			pos += int((63 - count) >> 3)
			count |= 56
		}
		e = dists[buffer&(1<<distanceBits-1)]
		if e.has(kindSubtable) {
			buffer >>= distanceBits
			count -= distanceBits
			e = dists[(e.value()+uint(buffer)&(1<<e.extra()-1))%distanceTable]
		}
		if e.has(kindSpecial) {
			return 0, ErrCorrupt
		}
		buffer >>= e & 63
		count -= uint(e & 63)
		extra = e.extra()
		distance := int(e.value()) + int(buffer&(1<<extra-1))
		buffer >>= extra
		count -= extra
		if distance > o {
			return 0, ErrCorrupt
		}
		from := o - distance
		end := o + length
		if distance >= 8 {
			for ; o < end; o, from = o+8, from+8 {
				binary.LittleEndian.PutUint64(dst[o:], binary.LittleEndian.Uint64(dst[from:]))
			}
		} else {
			repeat(dst, from, o, end)
		}
		o = end
	}
	*in = input{src, pos, buffer, count}
	return d.careful(in, dst, o)
}

// repeat fills dst[o:end] with the bytes of dst[from:o] over and over.
func repeat(dst []byte, from, o, end int) {
	for o < end {
		o += copy(dst[o:end], dst[from:o])
	}
}

// careful is block near the ends of the buffers.
func (d *decoder) careful(in *input, dst []byte, o int) (int, error) {
	for {
		in.refill()
		if in.overrun() {
			return 0, ErrTruncated
		}
		e := d.literals[in.buffer&(1<<literalBits-1)]
		if e.has(kindSubtable) {
			in.take(literalBits)
			e = d.literals[(e.value()+uint(in.buffer)&(1<<e.extra()-1))%literalTable]
		}
		in.take(e.bits())
		switch {
		case e.has(kindLiteral):
			if o == len(dst) {
				return 0, ErrTooLong
			}
			dst[o] = byte(e.value())
			o++
			continue
		case e.has(kindEnd):
			return o, nil
		case e.has(kindSpecial):
			return 0, ErrCorrupt
		}
		length := int(e.value() + in.take(e.extra()))
		in.refill()
		e = d.distances[in.buffer&(1<<distanceBits-1)]
		if e.has(kindSubtable) {
			in.take(distanceBits)
			e = d.distances[(e.value()+uint(in.buffer)&(1<<e.extra()-1))%distanceTable]
		}
		if e.has(kindSpecial) {
			return 0, ErrCorrupt
		}
		in.take(e.bits())
		distance := int(e.value() + in.take(e.extra()))
		if in.overrun() {
			return 0, ErrTruncated
		}
		if distance > o {
			return 0, ErrCorrupt
		}
		if length > len(dst)-o {
			return 0, ErrTooLong
		}
		repeat(dst, o-distance, o, o+length)
		o += length
	}
}
