// Package partition finds the partitions of a disk: GPT (UEFI specification 2.10, section 5) and MBR, with logical partitions.
package partition

import (
	"errors"
	"io"
)

// Max is how many partitions are examined: what a GPT has room for unless it was made with another size.
const Max = 128

// Purpose is what a partition is for, by its type.
type Purpose int

// The purposes that matter here.
const (
	Data Purpose = iota
	// Boot partitions are those of the firmware and of boot loaders: EFI system, BIOS boot, PReP and Microsoft reserved partitions.
	Boot
	// Swap partitions have no files.
	Swap
)

// Partition is a part of a disk, in bytes.
type Partition struct {
	// Number as Linux counts it (vda1 …).
	Number       int
	Offset, Size int64
	Purpose      Purpose
}

// ErrNone is returned for a disk without a partition table.
var ErrNone = errors.New("there is no partition table")

// Find returns the partitions of a disk of a size in bytes, at most Max, and whether there are more. Partitions of which a part is
// outside of the disk are an error.
func Find(r io.ReaderAt, size int64) (found []Partition, more bool, err error) {
	for _, sector := range []int64{512, 4096} {
		if found, more, err = gpt(r, size, sector); !errors.Is(err, ErrNone) {
			return found, more, err
		}
	}
	return mbr(r, size)
}
