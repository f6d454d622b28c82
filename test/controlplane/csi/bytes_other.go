//go:build !linux

package csi

import "os"

func shareBlocks(_, _ *os.File) bool { return false }

// dataOf treats the whole file as data: blocks of zeros are left out when they are written.
func dataOf(_ *os.File, size int64, part func(offset, length int64) error) error {
	return part(0, size)
}
