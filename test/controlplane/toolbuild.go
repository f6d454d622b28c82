package controlplane

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"github.com/vmstencil/stencil/test/product"
)

// ToolBuild is a build of tools in the background, at the lowest priority.
type ToolBuild struct {
	cancel   context.CancelFunc
	done     chan struct{}
	err      error
	progress relay
}

// StartToolBuild starts to build those of the named tools that are missing. It shows no progress before Wait, and ends with
// Stop or with ctx.
func StartToolBuild(ctx context.Context, names ...string) (*ToolBuild, error) {
	root, err := product.Root()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	command := exec.CommandContext(ctx, "nice", append([]string{"-n", "19", filepath.Join(root, "hack", "tool")}, names...)...)
	// A process group of its own, because hack/tool starts compilers.
	command.SysProcAttr = processAttributes()
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	b := &ToolBuild{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		// The parent-death signal is sent when this thread ends: see process.
		runtime.LockOSThread()
		_, b.err = provide(command, &b.progress, names)
	}()
	return b, nil
}

// Ended returns whether the build has ended.
func (b *ToolBuild) Ended() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// Wait waits until the build has ended and returns its error. Meanwhile, progress receives the latest line and all later ones.
func (b *ToolBuild) Wait(progress io.Writer) error {
	if !b.Ended() {
		b.progress.open(progress)
	}
	<-b.done
	return b.err
}

// Stop ends the build if it has not ended, and waits for that. What was built stays.
func (b *ToolBuild) Stop() {
	b.cancel()
	<-b.done
}

// relay retains the latest line written to it until it is opened, and forwards everything from then on.
type relay struct {
	mutex  sync.Mutex
	to     io.Writer
	latest []byte
}

func (r *relay) Write(p []byte) (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.to != nil {
		return r.to.Write(p)
	}
	r.latest = append(r.latest, p...)
	if end := bytes.LastIndexByte(bytes.TrimRight(r.latest, "\n"), '\n'); end >= 0 {
		r.latest = r.latest[end+1:]
	}
	return len(p), nil
}

func (r *relay) open(to io.Writer) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.to = to
	// A failure to show progress is no failure of the build.
	_, _ = to.Write(r.latest)
}
