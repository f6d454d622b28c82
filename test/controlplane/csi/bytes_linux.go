package csi

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// shareBlocks lets an empty file have the content of another without a copy, and reports whether the filesystem can do that.
func shareBlocks(target, source *os.File) bool {
	return unix.IoctlFileClone(int(target.Fd()), int(source.Fd())) == nil
}

// dataOf calls a function with each part of a file that is not a hole.
func dataOf(file *os.File, size int64, part func(offset, length int64) error) error {
	for offset := int64(0); offset < size; {
		data, err := unix.Seek(int(file.Fd()), offset, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("looking for data in %s: %w", file.Name(), err)
		}
		hole, err := unix.Seek(int(file.Fd()), data, unix.SEEK_HOLE)
		if err != nil {
			return fmt.Errorf("looking for a hole in %s: %w", file.Name(), err)
		}
		if err := part(data, min(hole, size)-data); err != nil {
			return err
		}
		offset = hole
	}
	return nil
}
