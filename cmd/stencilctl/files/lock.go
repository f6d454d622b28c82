package files

import (
	"errors"
	"os"
)

// ErrLocked is returned if another process has the lock.
var ErrLocked = errors.New("another process has the lock")

// Lock is a file that one process has at a time. The end of the process releases it.
type Lock struct{ file *os.File }
