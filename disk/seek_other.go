//go:build !linux

package disk

import "os"

// seekData returns the rest of the file: holes are found by their zeros.
func seekData(_ *os.File, offset int64) (start, end int64, err error) {
	return offset, MaxSize, nil
}
