//go:build unix

package files

import (
	"errors"
	"os"
	"syscall"
)

// NewLock creates a file and locks it. The error is ErrLocked if another process has it locked.
func NewLock(path string) (*Lock, error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrLocked
		}
		locked, statErr := file.Stat()
		if err = errors.Join(err, statErr); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		// Another process may have released it, and removed the file, since it was opened here.
		if present, err := os.Stat(path); err == nil && os.SameFile(locked, present) {
			return &Lock{file}, nil
		}
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
}

// Release removes the file and releases it.
func (l *Lock) Release() error { return errors.Join(os.Remove(l.file.Name()), l.file.Close()) }
