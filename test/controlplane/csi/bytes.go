package csi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// bytes of volumes and snapshots are stored by their handles, which stay the same when a volume is bound to another claim.
const (
	volumePrefix, snapshotPrefix = "volume-", "snapshot-"
	// newPrefix begins the names of what is not complete.
	newPrefix = ".new-"
)

// errBytesGone is returned when a copy has no source.
var errBytesGone = errors.New("its bytes are gone")

// store has one entry per handle in a folder: a sparse file for a volume of mode Block, a folder for one of mode Filesystem.
type store struct{ folder string }

func (s store) path(handle string) string { return filepath.Join(s.folder, filepath.Base(handle)) }

// create makes an empty volume, unless it exists.
func (s store) create(handle string, block bool, size int64) error {
	return s.add(handle, func(path string) error {
		if !block {
			return os.Mkdir(path, 0o700)
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		return errors.Join(file.Truncate(size), file.Close())
	})
}

// copy makes an independent copy, unless it exists. A file is enlarged to size if that is larger.
func (s store) copy(handle, source string, size int64) error {
	return s.add(handle, func(path string) error {
		switch _, err := os.Lstat(s.path(source)); {
		case errors.Is(err, fs.ErrNotExist):
			return errBytesGone
		case err != nil:
			return err
		}
		if err := copyTree(s.path(source), path); err != nil {
			return err
		}
		return enlargeFile(path, size)
	})
}

// add makes an entry by a function, so that it appears when it is complete.
func (s store) add(handle string, make func(path string) error) error {
	path := s.path(handle)
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	unfinished := filepath.Join(s.folder, newPrefix+filepath.Base(handle))
	err := os.RemoveAll(unfinished)
	if err == nil {
		err = make(unfinished)
	}
	if err == nil {
		err = os.Rename(unfinished, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("storing the bytes of %s: %w", handle, err), os.RemoveAll(unfinished))
	}
	return nil
}

// grow enlarges a volume of mode Block. A volume of mode Filesystem has no size here.
func (s store) grow(handle string, size int64) error {
	if err := enlargeFile(s.path(handle), size); err != nil {
		return fmt.Errorf("enlarging the bytes of %s: %w", handle, err)
	}
	return nil
}

func enlargeFile(path string, size int64) error {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() >= size {
		return err
	}
	return os.Truncate(path, size)
}

// remove deletes an entry, if it exists.
func (s store) remove(handle string) error {
	if err := os.RemoveAll(s.path(handle)); err != nil {
		return fmt.Errorf("deleting the bytes of %s: %w", handle, err)
	}
	return nil
}

// copyTree copies a file, or a folder with what it contains.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		switch {
		case entry.IsDir():
			return os.Mkdir(target, 0o700)
		case entry.Type().IsRegular():
			return copyFile(path, target)
		case entry.Type() == fs.ModeSymlink:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		}
		return fmt.Errorf("%s is neither a file nor a folder nor a symbolic link", path)
	})
}

// copyFile shares the blocks of a file if the filesystem can, and copies those that are not holes otherwise. A copy of the second kind is not atomic:
// it may have a part of what another process writes meanwhile.
func copyFile(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if shareBlocks(target, source) {
		return nil
	}
	if err := target.Truncate(info.Size()); err != nil {
		return err
	}
	return dataOf(source, info.Size(), func(offset, length int64) error {
		_, err := writeSparse(target, offset, io.NewSectionReader(source, offset, length))
		return err
	})
}

// block is how many bytes are left out together if they are zero.
const blockSize = 64 << 10

// writeSparse writes at an offset of a file that has zeros there, and leaves out blocks of zeros. It returns how many bytes it read.
func writeSparse(target io.WriterAt, offset int64, content io.Reader) (int64, error) {
	block, zeros, read := make([]byte, blockSize), make([]byte, blockSize), int64(0)
	for {
		n, err := io.ReadFull(content, block)
		if n > 0 && !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := target.WriteAt(block[:n], offset+read); err != nil {
				return read, err
			}
		}
		read += int64(n)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return read, nil
		case err != nil:
			return read, err
		}
	}
}
