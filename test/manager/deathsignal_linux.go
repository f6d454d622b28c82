package manager

import "syscall"

// dieWithParent makes the kernel kill the process when the thread that started it ends, so that nothing
// is left behind even when the test binary panics or is killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
