//go:build !linux

package manager

import "syscall"

// dieWithParent returns empty attributes: only Linux can end a process with its parent.
func dieWithParent() *syscall.SysProcAttr {
	return nil
}
