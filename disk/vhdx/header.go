package vhdx

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strings"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/internal/source"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum is the CRC-32C of a structure whose own field for it, at byte 4, is zero.
func sum(b []byte) uint32 {
	c := crc32.Update(0, castagnoli, b[:4])
	c = crc32.Update(c, castagnoli, make([]byte, 4))
	return crc32.Update(c, castagnoli, b[8:])
}

// valid returns whether a structure has its signature and its checksum.
func valid(b []byte, signature string) bool {
	return string(b[:4]) == signature && binary.LittleEndian.Uint32(b[4:]) == sum(b)
}

// checkHeaders rejects an image that its last writer has not closed: [MS-VHDX], section 2.2.2.
func checkHeaders(file source.Source) error {
	identifier := make([]byte, 8)
	if err := file.Read("file identifier", identifier, 0); err != nil {
		return err
	}
	if string(identifier) != "vhdxfile" {
		return disk.VHDX.Errorf("no VHDX image: it begins with %q", identifier)
	}
	le := binary.LittleEndian
	var current []byte
	for _, offset := range []int64{64 * kiB, 128 * kiB} {
		b := make([]byte, 4*kiB)
		if err := file.Read("header", b, offset); err != nil {
			return err
		}
		if valid(b, "head") && (current == nil || le.Uint64(b[8:]) > le.Uint64(current[8:])) {
			current = b
		}
	}
	if current == nil {
		return disk.VHDX.Errorf("neither of the two headers has a valid checksum")
	}
	if version := le.Uint16(current[66:]); version != 1 {
		return disk.VHDX.Errorf("version %d is not supported: 1 is", version)
	}
	if log := current[48:64]; string(log) != string(make([]byte, 16)) {
		return disk.VHDX.Errorf("its log is not empty, because it was not closed: attach and detach it in Hyper-V, or run qemu-img check -r all")
	}
	return nil
}

// guid is an identifier as it is stored.
type guid [16]byte

// newGUID parses one as it is printed, which has its first three parts in another order of bytes.
func newGUID(text string) guid {
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(b) != 16 {
		panic("vhdx: " + text + " is no GUID")
	}
	return guid{b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]}
}

func (g guid) String() string {
	return strings.ToUpper(hex.EncodeToString([]byte{g[3], g[2], g[1], g[0]}) + "-" + hex.EncodeToString([]byte{g[5], g[4]}) + "-" +
		hex.EncodeToString([]byte{g[7], g[6]}) + "-" + hex.EncodeToString(g[8:10]) + "-" + hex.EncodeToString(g[10:]))
}

// region is a part of the file, in bytes.
type region struct {
	offset, length int64
}

// regions are those that every image has.
type regions struct {
	table, metadata region
}

var (
	tableRegion    = newGUID("2DC27766-F623-4200-9D64-115E9BFD4A08")
	metadataRegion = newGUID("8B7CA206-4790-4B9A-B8FE-575F050F886E")
)

// maxRegions is the largest number of entries of a region table.
const maxRegions = 2047

// readRegions reads the region table: [MS-VHDX], section 2.2.3.
func readRegions(file source.Source) (regions, error) {
	b := make([]byte, 64*kiB)
	for _, offset := range []int64{192 * kiB, 256 * kiB} {
		if err := file.Read("region table", b, offset); err != nil {
			return regions{}, err
		}
		if valid(b, "regi") {
			return decodeRegions(file, b)
		}
	}
	return regions{}, disk.VHDX.Errorf("neither of the two region tables has a valid checksum")
}

func decodeRegions(file source.Source, b []byte) (regions, error) {
	le := binary.LittleEndian
	count := le.Uint32(b[8:])
	if count > maxRegions {
		return regions{}, disk.VHDX.Errorf("%d regions are more than the limit of %d", count, maxRegions)
	}
	var found regions
	for i := range int(count) {
		entry := b[16+32*i:]
		id, offset := guid(entry[:16]), le.Uint64(entry[16:])
		r := region{int64(offset), int64(le.Uint32(entry[24:]))}
		var into *region
		switch id {
		case tableRegion:
			into = &found.table
		case metadataRegion:
			into = &found.metadata
		default:
			if le.Uint32(entry[28:])&1 == 1 {
				return found, disk.VHDX.Errorf("unknown required region %s", id)
			}
			continue
		}
		if into.length != 0 {
			return found, disk.VHDX.Errorf("two regions %s", id)
		}
		if offset < uint64(miB) || offset%uint64(miB) != 0 || offset > uint64(file.Size) || r.length == 0 || r.length%miB != 0 {
			return found, disk.VHDX.Errorf("region %s, %d bytes at byte %d, is not of whole MiB within the file of %d bytes", id, r.length, offset, file.Size)
		}
		if err := file.Check("region "+id.String(), r.offset, r.length); err != nil {
			return found, err
		}
		*into = r
	}
	if found.table.length == 0 || found.metadata.length == 0 {
		return found, disk.VHDX.Errorf("no region of the block table or of metadata")
	}
	return found, nil
}
