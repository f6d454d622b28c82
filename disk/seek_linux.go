package disk

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// lseek(2).
const (
	seekDataWhence = 3
	seekHoleWhence = 4
)

// seekData returns the first range of a file at or after an offset that is not a hole, io.EOF after the last. Where the file system does
// not report holes the kernel returns the rest of the file.
func seekData(file *os.File, offset int64) (start, end int64, err error) {
	start, err = file.Seek(offset, seekDataWhence)
	if errors.Is(err, syscall.ENXIO) {
		return 0, 0, io.EOF
	}
	if errors.Is(err, syscall.EINVAL) {
		// A block device.
		return offset, MaxSize, nil
	}
	if err != nil {
		return 0, 0, err
	}
	end, err = file.Seek(start, seekHoleWhence)
	return start, end, err
}
