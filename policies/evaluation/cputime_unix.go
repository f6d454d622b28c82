//go:build unix

package evaluation

import (
	"syscall"
	"time"
)

// processTime returns the CPU time that the process has used.
func processTime() (time.Duration, bool) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, false
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), true
}
