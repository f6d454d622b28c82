package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Init is process 1 of a node's namespaces: it runs a command as process 2, and waits for the processes that lose their parents. It returns when the
// command ends. All other processes end with process 1.
func Init(program string, arguments ...string) error {
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting the node: %w", err)
	}
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return fmt.Errorf("waiting for processes of the node: %w", err)
		case ended == command.Process.Pid && status.ExitStatus() != 0:
			return fmt.Errorf("the node ended with status %d", status.ExitStatus())
		case ended == command.Process.Pid:
			return nil
		}
	}
}
