package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// becomeReaper makes orphans of the worker's children of this process.
func becomeReaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming a child subreaper: %w", err)
	}
	return nil
}

// reap waits for every child until the context ends. Nothing else in this process may
// wait for one: os/exec must not be used beside it.
func reap(ctx context.Context) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD)
	defer signal.Stop(signals)
	for {
		reapAll()
		select {
		case <-ctx.Done():
			return
		case <-signals:
		}
	}
}

// reapAll waits for the children that have ended, and says whether there are others.
func reapAll() (others bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR), err == nil && pid > 0:
		default:
			return err == nil
		}
	}
}

// reapRest waits for every child that is left, so that none is left to whoever has
// started this process. It gives up after the limit.
func reapRest(limit time.Duration) {
	for deadline := time.Now().Add(limit); reapAll() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// killChildren ends every child of this process. It is called when the worker is
// gone: what is left are processes that its libvirt had started.
func killChildren() {
	for _, pid := range children(os.Getpid()) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// children are the processes whose parent is the given one.
func children(parent int) []int {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		return nil
	}
	var pids []int
	for _, list := range lists {
		content, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(content)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
