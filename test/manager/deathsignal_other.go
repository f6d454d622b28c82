//go:build !linux

package manager

import "syscall"

// dieWithParent returns nothing special: only Linux can tie a process to its parent.
func dieWithParent() *syscall.SysProcAttr {
	return nil
}
