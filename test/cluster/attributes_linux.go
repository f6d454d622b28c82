package cluster

import (
	"syscall"

	"github.com/vmstencil/stencil/test/cluster/node"
)

// attributes start a process in new namespaces, which ends with the thread that starts it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: node.Namespaces, Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
