package qcow2

import (
	"encoding/binary"
	"math"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/internal/source"
)

const (
	// maxSnapshots is the largest number of internal snapshots.
	maxSnapshots = 4096
	// snapshotHeader is the length of an entry in bytes without extra data, ID and name.
	snapshotHeader = 40
	// maxExtra is the most extra data of a snapshot in bytes, as in QEMU.
	maxExtra = 1024
)

// checkSnapshots reads the table of internal snapshots, of which nothing is used: the disk is that of the active layer. A table with
// places outside the file is a damaged image.
func checkSnapshots(file source.Source, h header) error {
	if h.snapshots > maxSnapshots {
		return disk.QCOW2.Errorf("%d internal snapshots are more than the limit of %d", h.snapshots, maxSnapshots)
	}
	if h.snapshotsAt > math.MaxInt64/2 {
		return disk.QCOW2.Errorf("the snapshot table at byte %d is beyond the end of the file", h.snapshotsAt)
	}
	at := int64(h.snapshotsAt)
	be := binary.BigEndian
	b := make([]byte, snapshotHeader)
	for number := range h.snapshots {
		if err := file.Read("snapshot table", b, at); err != nil {
			return err
		}
		l1, entries, extra := be.Uint64(b), int64(be.Uint32(b[8:])), int64(be.Uint32(b[36:]))
		if extra > maxExtra {
			return disk.QCOW2.Errorf("snapshot %d has %d bytes of extra data: the limit is %d", number, extra, maxExtra)
		}
		if l1 > math.MaxInt64 || entries*8 > maxL1 {
			return disk.QCOW2.Errorf("the L1 table of snapshot %d, %d entries at byte %d, is out of bounds", number, entries, l1)
		}
		if err := file.Check("L1 table of a snapshot", int64(l1), entries*8); err != nil {
			return err
		}
		length := snapshotHeader + extra + int64(be.Uint16(b[12:])) + int64(be.Uint16(b[14:]))
		if err := file.Check("snapshot table", at, length); err != nil {
			return err
		}
		at += (length + 7) / 8 * 8
	}
	return nil
}
