package kubelet

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// endGroup waits until a process has ended and kills what it leaves in its group, as the end of a container does. The process is not waited for yet, so that
// no other group can have its ID.
func endGroup(id int) {
	for {
		err := unix.Waitid(unix.P_PID, id, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil {
			_ = syscall.Kill(-id, syscall.SIGKILL)
		}
		return
	}
}
