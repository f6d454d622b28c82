package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// running is the process of a container.
type running struct {
	command *exec.Cmd
	root    string
	began   metav1.Time
	// ended is closed when the process has ended and was waited for.
	ended chan struct{}
}

// start starts the process of a container. Like the components of a plane, it is started and waited for on an operating system thread that exists as long as
// the process: the parent-death signal is sent when that thread ends.
func start(path string, arguments, environment []string, folder, root, logPath string, attributes *syscall.SysProcAttr, ended func()) (*running, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of a pod: %w", err)
	}
	// No context: it runs until its pod is deleted.
	r := &running{command: exec.CommandContext(context.Background(), path, arguments...), root: root, began: metav1.Now(), ended: make(chan struct{})}
	r.command.Dir, r.command.Env, r.command.SysProcAttr = folder, environment, attributes
	r.command.Stdout, r.command.Stderr = log, log
	result := make(chan error)
	go func() {
		// Never unlocked: the thread ends with this goroutine, and the process has ended before.
		runtime.LockOSThread()
		err := r.command.Start()
		result <- err
		if err == nil {
			endGroup(r.command.Process.Pid)
			// The state of the process contains the result.
			_ = r.command.Wait()
			close(r.ended)
			ended()
		}
		log.Close()
	}()
	if err := <-result; err != nil {
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	return r, nil
}

// hasEnded reports whether the process has ended.
func (r *running) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// kill ends the process and its group at once, and waits.
func (r *running) kill() {
	if !r.hasEnded() {
		// The group may no longer exist.
		_ = syscall.Kill(-r.command.Process.Pid, syscall.SIGKILL)
	}
	<-r.ended
}

// exitCode returns the exit code as a shell and a container runtime report it: 137 after SIGKILL.
func (r *running) exitCode() int32 {
	state := r.command.ProcessState
	if status, is := state.Sys().(syscall.WaitStatus); is && status.Signaled() {
		return 128 + int32(status.Signal()) //nolint:gosec // signals are below 65
	}
	return int32(state.ExitCode()) //nolint:gosec // one byte
}

// Kill ends the process of a pod by SIGKILL, as a node that is out of memory does, and waits until it has ended. The pod is restarted or fails as its
// restartPolicy specifies.
func (n *Nodes) Kill(namespace, name string) error {
	n.mutex.Lock()
	s := n.sandboxes[namespace+"/"+name]
	var process *running
	if s != nil {
		process = s.process
	}
	n.mutex.Unlock()
	if process == nil || process.hasEnded() {
		return fmt.Errorf("the pod %s/%s has no process that runs", namespace, name)
	}
	process.kill()
	return nil
}

// Process returns the process ID of a pod that runs as one, 0 if it does not.
func (n *Nodes) Process(namespace, name string) int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if s := n.sandboxes[namespace+"/"+name]; s != nil && s.process != nil && !s.process.hasEnded() {
		return s.process.command.Process.Pid
	}
	return 0
}

// discard ends what runs for a pod and deletes its files.
func (n *Nodes) discard(key string) error {
	n.mutex.Lock()
	s := n.sandboxes[key]
	delete(n.sandboxes, key)
	n.mutex.Unlock()
	if s == nil {
		return nil
	}
	if s.process != nil {
		s.process.kill()
	}
	return errors.Join(s.reserved.Close(), os.RemoveAll(s.folder))
}

// terminate ends the process of a pod that is being deleted, and then removes the pod. It returns after how long the process has to be killed.
func (n *Nodes) terminate(ctx context.Context, key string, pod *corev1.Pod) (time.Duration, error) {
	s := n.sandbox(key)
	if s != nil && s.process != nil && !s.process.hasEnded() {
		if s.signaled.IsZero() {
			s.signaled = time.Now()
			// It may have ended.
			_ = s.process.command.Process.Signal(syscall.SIGTERM)
		}
		grace := time.Duration(0)
		if seconds := pod.DeletionGracePeriodSeconds; seconds != nil {
			grace = time.Duration(*seconds) * time.Second
		}
		if left := grace - time.Since(s.signaled); left > 0 {
			return left, nil
		}
		s.process.kill()
	}
	if s != nil {
		if s.process != nil {
			n.end(s, pod, true)
		}
		if err := n.reportProcess(ctx, s, pod); err != nil {
			return 0, err
		}
	}
	return 0, n.kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
}
