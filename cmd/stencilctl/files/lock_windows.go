package files

import (
	"errors"
	"os"
	"syscall"
)

// sharingViolation is ERROR_SHARING_VIOLATION.
const sharingViolation syscall.Errno = 32

// NewLock creates a file and locks it. The error is ErrLocked if another process has it locked.
func NewLock(path string) (*Lock, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	// A file that is not shared cannot be opened again.
	handle, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharingViolation) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &Lock{os.NewFile(uintptr(handle), path)}, nil
}

// Release releases the file and removes it.
func (l *Lock) Release() error {
	err := l.file.Close()
	// It fails if another process has locked it since, which removes it then.
	_ = os.Remove(l.file.Name())
	return err
}
