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

// becomeReaper makes this process the parent of orphans among the worker's descendants.
func becomeReaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming a child subreaper: %w", err)
	}
	return nil
}

// reap waits for every child until the context ends. No other code in this process may wait for
// a child: os/exec must not be used at the same time.
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

// reapAll waits for the children that have ended, and reports whether others are running.
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

// reapRest waits for every remaining child, so that the parent of this process inherits none.
// It returns after the limit.
func reapRest(limit time.Duration) {
	for deadline := time.Now().Add(limit); reapAll() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// killChildren kills every child of this process. It is called after the worker has ended: the
// remaining processes were started by its libvirt.
func killChildren() {
	for _, pid := range children(os.Getpid()) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// children returns the processes with the given parent.
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
