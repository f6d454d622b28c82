package partition

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// purposes are by type GUIDs as they are stored.
var purposes = map[[16]byte]Purpose{
	{0x28, 0x73, 0x2A, 0xC1, 0x1F, 0xF8, 0xD2, 0x11, 0xBA, 0x4B, 0x00, 0xA0, 0xC9, 0x3E, 0xC9, 0x3B}: Boot, // EFI system
	{0x48, 0x61, 0x68, 0x21, 0x49, 0x64, 0x6F, 0x6E, 0x74, 0x4E, 0x65, 0x65, 0x64, 0x45, 0x46, 0x49}: Boot, // BIOS boot
	{0x38, 0x2D, 0x1A, 0x9E, 0x12, 0xC6, 0x16, 0x43, 0xAA, 0x26, 0x8B, 0x49, 0x52, 0x1E, 0x5A, 0x8B}: Boot, // PReP boot
	{0x16, 0xE3, 0xC9, 0xE3, 0x5C, 0x0B, 0xB8, 0x4D, 0x81, 0x7D, 0xF9, 0x2D, 0xF0, 0x02, 0x15, 0xAE}: Boot, // Microsoft reserved
	{0x6D, 0xFD, 0x57, 0x06, 0xAB, 0xA4, 0xC4, 0x43, 0x84, 0xE5, 0x09, 0x33, 0xC8, 0x4B, 0x4F, 0x4F}: Swap, // Linux swap
}

const (
	gptHeader   = 92
	gptEntry    = 128
	maxGPTEntry = 4096
)

var errDamagedGPT = errors.New("the GPT is damaged")

func gpt(r io.ReaderAt, size, sector int64) (found []Partition, more bool, err error) {
	if size < 3*sector {
		return nil, false, ErrNone
	}
	header := make([]byte, sector)
	if _, err := r.ReadAt(header, sector); err != nil {
		return nil, false, fmt.Errorf("reading the GPT: %w", err)
	}
	le := binary.LittleEndian
	if string(header[:8]) != "EFI PART" {
		return nil, false, ErrNone
	}
	length, entry, count := le.Uint32(header[12:]), int64(le.Uint32(header[84:])), int(le.Uint32(header[80:]))
	if length < gptHeader || int64(length) > sector || entry < gptEntry || entry > maxGPTEntry || entry%8 != 0 {
		return nil, false, errDamagedGPT
	}
	sum := le.Uint32(header[16:])
	clear(header[16:20])
	start := le.Uint64(header[72:])
	if crc32.ChecksumIEEE(header[:length]) != sum || start < 2 || start > uint64(size/sector) {
		return nil, false, errDamagedGPT
	}
	e := make([]byte, entry)
	for i := range count {
		if i == Max {
			return found, true, nil
		}
		if _, err := r.ReadAt(e, int64(start)*sector+int64(i)*entry); err != nil {
			return nil, false, fmt.Errorf("reading the GPT: %w", err)
		}
		kind := [16]byte(e)
		if kind == ([16]byte{}) {
			continue
		}
		first, last := le.Uint64(e[32:]), le.Uint64(e[40:])
		if first == 0 || last < first || last >= uint64(size/sector) {
			return nil, false, fmt.Errorf("partition %d is outside of the disk", i+1)
		}
		found = append(found, Partition{Number: i + 1, Offset: int64(first) * sector, Size: int64(last-first+1) * sector, Purpose: purposes[kind]})
	}
	return found, false, nil
}
