//go:build !linux

package controlplane

import "syscall"

// processAttributes has no parent-death signal to set outside Linux: there, processes outlive a test binary that is killed.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
