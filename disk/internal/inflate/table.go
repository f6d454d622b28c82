package inflate

import "math/bits"

// An entry of a table describes the code word that begins with the bits which are its index:
//
//	bits 0-7    number of bits of the code word, in a subtable without those of the main table
//	bits 8-11   number of extra bits of a length or distance; of a subtable, the number of bits of its index
//	bits 12-15  kind, none of them for a length or distance
//	bits 16-31  literal, least length or distance, or first entry of the subtable
type entry uint32

const (
	kindEnd      = 1 << 12
	kindSubtable = 1 << 13
	kindLiteral  = 1 << 14
	kindInvalid  = 1 << 15
	kindSpecial  = kindEnd | kindSubtable | kindInvalid
)

func (e entry) bits() uint       { return uint(e & 0xff) }
func (e entry) extra() uint      { return uint(e>>8) & 15 }
func (e entry) value() uint      { return uint(e >> 16) }
func (e entry) has(k entry) bool { return e&k != 0 }

const (
	maxBits       = 15
	literalBits   = 11
	distanceBits  = 9
	lengthBits    = 7
	literalCount  = 288
	distanceCount = 32
	lengthCount   = 19
	// Sizes of tables with all subtables. A subtable of n bits needs at least 2^(n-1) + 1 symbols, so their sum is bounded by the main
	// table and twice the number of symbols; these are well above it and build checks them.
	literalTable  = 1<<literalBits + 2048
	distanceTable = 1<<distanceBits + 1024
	lengthTable   = 1 << lengthBits
)

var (
	literals  = symbols(literalCount, literalSymbol)
	distances = symbols(distanceCount, distanceSymbol)
	codes     = symbols(lengthCount, func(symbol uint) entry { return entry(symbol << 16) })
)

// symbols returns the entries of an alphabet, without the length of the code word.
func symbols(count uint, of func(uint) entry) []entry {
	list := make([]entry, count)
	for symbol := range list {
		list[symbol] = of(uint(symbol))
	}
	return list
}

// literalSymbol: RFC 1951, section 3.2.5.
func literalSymbol(symbol uint) entry {
	switch {
	case symbol < 256:
		return entry(symbol<<16) | kindLiteral
	case symbol == 256:
		return kindEnd
	case symbol < 265:
		return entry((symbol - 254) << 16)
	case symbol < 285:
		extra := (symbol - 261) / 4
		return entry((3+(4+(symbol-261)%4)<<extra)<<16 | extra<<8)
	case symbol == 285:
		return entry(258 << 16)
	default:
		return kindInvalid
	}
}

func distanceSymbol(symbol uint) entry {
	switch {
	case symbol < 4:
		return entry((symbol + 1) << 16)
	case symbol < 30:
		extra := symbol/2 - 1
		return entry((1+(2+symbol%2)<<extra)<<16 | extra<<8)
	default:
		return kindInvalid
	}
}

// build makes the table of a canonical Huffman code from the lengths of its code words. It returns false for a code that is over-subscribed
// or incomplete. A code of one word of one bit, or of none, is allowed for distances (RFC 1951, section 3.2.7).
func build(table []entry, mainBits uint, lengths []uint8, alphabet []entry, mayBeIncomplete bool) bool {
	var count [maxBits + 1]uint
	for _, length := range lengths {
		count[length]++
	}
	used := uint(len(lengths)) - count[0]
	left := 1
	for length := 1; length <= maxBits; length++ {
		left = left<<1 - int(count[length])
		if left < 0 {
			return false
		}
	}
	if left > 0 {
		if !mayBeIncomplete || used > 1 || used == 1 && count[1] != 1 {
			return false
		}
		for i := range table[:1<<mainBits] {
			table[i] = kindInvalid
		}
	}
	// Symbols by length, and in their order within it.
	var start [maxBits + 2]uint
	for length := 1; length <= maxBits; length++ {
		start[length+1] = start[length] + count[length]
	}
	var sorted [literalCount]uint16
	for symbol, length := range lengths {
		if length != 0 {
			sorted[start[length]] = uint16(symbol)
			start[length]++
		}
	}
	return fill(table, mainBits, lengths, alphabet, sorted[:used], &count)
}

// fill writes the entries. It counts down the code words of each length that are left.
func fill(table []entry, mainBits uint, lengths []uint8, alphabet []entry, sorted []uint16, count *[maxBits + 1]uint) bool {
	code, previous := uint(0), uint(0)
	end := uint(1) << mainBits // of the subtables so far
	prefix, subtable, subtableBits := ^uint(0), uint(0), uint(0)
	for _, symbol := range sorted {
		length := uint(lengths[symbol])
		code <<= length - previous
		previous = length
		reversed := uint(bits.Reverse16(uint16(code)) >> (16 - length))
		code++
		word := alphabet[symbol]
		if length <= mainBits {
			for i := reversed; i < 1<<mainBits; i += 1 << length {
				table[i] = word | entry(length)
			}
			count[length]--
			continue
		}
		if p := reversed & (1<<mainBits - 1); p != prefix {
			prefix = p
			subtable = end
			// As many bits as the rest of the code words needs that begin with the prefix.
			subtableBits = length - mainBits
			for space := 1<<subtableBits - int(count[length]); space > 0 && subtableBits+mainBits < maxBits; {
				subtableBits++
				space = space<<1 - int(count[subtableBits+mainBits])
			}
			end += 1 << subtableBits
			if end > uint(len(table)) {
				return false
			}
			table[prefix] = kindSubtable | entry(subtable<<16|subtableBits<<8|mainBits)
		}
		for i := reversed >> mainBits; i < 1<<subtableBits; i += 1 << (length - mainBits) {
			table[subtable+i] = word | entry(length-mainBits)
		}
		count[length]--
	}
	return true
}
