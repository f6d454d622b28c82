//go:build !linux

package child

import (
	"runtime/debug"
	"syscall"
	"time"
)

// restrict sets a target only: the manager runs on Linux.
func restrict(memoryBytes int64) error {
	debug.SetMemoryLimit(memoryBytes)
	return nil
}

func cpuTime() time.Duration { return 0 }

func attributes() *syscall.SysProcAttr { return nil }
