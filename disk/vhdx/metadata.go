package vhdx

import (
	"encoding/binary"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/internal/source"
)

// metadata is what describes the disk: [MS-VHDX], section 2.6.
type metadata struct {
	size int64
	// block and sector are numbers of bytes.
	block, sector int64
}

const (
	// maxItems is the largest number of entries of the metadata table.
	maxItems = 2047
	// hasParent is a flag of the file parameters.
	hasParent = 2
	// isRequired is a flag of an item.
	isRequired = 4
)

var (
	fileParameters = newGUID("CAA16737-FA36-4D43-B3B6-33F0AA44E76B")
	diskSize       = newGUID("2FA54224-CD1B-4876-B211-5DBED83BF4B8")
	diskID         = newGUID("BECA12AB-B2E6-4523-93EF-C309E000C746")
	logicalSector  = newGUID("8141BF1D-A96F-4709-BA47-F233A8FAAB5F")
	physicalSector = newGUID("CDA348C7-445D-4471-9CC9-E9885251C556")
	parentLocator  = newGUID("A8D35F2D-B30B-454D-ABF7-D3D84834AB0C")
)

// itemLengths of all items, also of the ones that are not read.
var itemLengths = map[guid]uint32{fileParameters: 8, diskSize: 8, logicalSector: 4, diskID: 16, physicalSector: 4}

func readMetadata(file source.Source, r region) (metadata, error) {
	le := binary.LittleEndian
	table := make([]byte, 64*kiB)
	if err := file.Read("metadata table", table, r.offset); err != nil {
		return metadata{}, err
	}
	if string(table[:8]) != "metadata" {
		return metadata{}, disk.VHDX.Errorf("no metadata table at byte %d", r.offset)
	}
	count := le.Uint16(table[10:])
	if count > maxItems {
		return metadata{}, disk.VHDX.Errorf("%d metadata items are more than the limit of %d", count, maxItems)
	}
	values := map[guid][]byte{}
	for i := range int(count) {
		entry := table[32+32*i:]
		id, offset, length := guid(entry[:16]), int64(le.Uint32(entry[16:])), le.Uint32(entry[20:])
		if id == parentLocator {
			return metadata{}, differencing()
		}
		want, known := itemLengths[id]
		if !known {
			if le.Uint32(entry[24:])&isRequired != 0 {
				return metadata{}, disk.VHDX.Errorf("unknown required metadata item %s", id)
			}
			continue
		}
		if values[id] != nil {
			return metadata{}, disk.VHDX.Errorf("two metadata items %s", id)
		}
		if length != want || offset < 64*kiB || offset+int64(length) > r.length {
			return metadata{}, disk.VHDX.Errorf("metadata item %s, %d bytes at byte %d of a region of %d, is not %d bytes after the table", id, length, offset, r.length, want)
		}
		values[id] = make([]byte, length)
		if err := file.Read("metadata item", values[id], r.offset+offset); err != nil {
			return metadata{}, err
		}
	}
	return decodeMetadata(values)
}

func differencing() error {
	return disk.VHDX.Errorf("a differencing image, whose data is in its parent: merge it first")
}

func decodeMetadata(values map[guid][]byte) (metadata, error) {
	le := binary.LittleEndian
	for _, id := range []guid{fileParameters, diskSize, logicalSector} {
		if values[id] == nil {
			return metadata{}, disk.VHDX.Errorf("no metadata item %s", id)
		}
	}
	parameters, size := values[fileParameters], le.Uint64(values[diskSize])
	m := metadata{size: int64(size), block: int64(le.Uint32(parameters)), sector: int64(le.Uint32(values[logicalSector]))}
	switch {
	case le.Uint32(parameters[4:])&hasParent != 0:
		return m, differencing()
	case m.block < minBlock || m.block > maxBlock || m.block&(m.block-1) != 0:
		return m, disk.VHDX.Errorf("blocks of %d bytes are not supported: powers of two from %d to %d are", m.block, minBlock, maxBlock)
	case m.sector != 512 && m.sector != 4096:
		return m, disk.VHDX.Errorf("sectors of %d bytes are not supported: 512 and 4096 are", m.sector)
	case size > uint64(disk.MaxSize) || m.size%m.sector != 0:
		return m, disk.VHDX.Errorf("a size of %d bytes is not a multiple of %d up to %d", size, m.sector, disk.MaxSize)
	}
	return m, nil
}
