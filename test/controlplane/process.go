package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is one running component. It leads a process group of its own, so that a Ctrl-C meant for the test or the demo
// does not reach it before its owner decides to stop it.
//
// On Linux it also carries a parent-death signal: the kernel kills it as soon as the thread that started it ends. Each
// process is therefore started, and waited for, on an operating system thread of its own that lives as long as the process
// does. When the whole test binary is killed, by SIGKILL too, all its threads end and everything it started with them.
type process struct {
	name    string
	logPath string
	command *exec.Cmd
	// ended is closed when the process has ended and was waited for.
	ended chan struct{}
}

// StartProgram starts a program, which ends with the plane and logs to logs/NAME.log in the plane's folder.
func (p *Plane) StartProgram(name, path string, arguments ...string) error {
	_, err := p.startProcess(name, path, arguments...)
	return err
}

// startProcess starts a component of the plane, which logs to logs/NAME.log in the plane's folder.
func (p *Plane) startProcess(name, path string, arguments ...string) (*process, error) {
	return p.startProcessWith(nil, name, path, arguments...)
}

// startProcessWith is startProcess with further environment variables.
func (p *Plane) startProcessWith(environment []string, name, path string, arguments ...string) (*process, error) {
	started := &process{name: name, logPath: p.folder.file("logs", name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(started.logPath, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	// No context: it runs until it is killed, even after the request that started it.
	started.command = exec.CommandContext(context.Background(), path, arguments...)
	started.command.Dir = p.folder.path
	started.command.Env = p.environment(environment...)
	started.command.Stdout, started.command.Stderr = log, log
	started.command.SysProcAttr = processAttributes()

	result := make(chan error)
	go func() {
		// Never unlocked: the thread ends with this goroutine, and the process has ended before.
		runtime.LockOSThread()
		err := started.command.Start()
		result <- err
		if err == nil {
			// The log contains the reason.
			_ = started.command.Wait()
			close(started.ended)
		}
		log.Close()
	}()
	if err := <-result; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.stopped {
		// Stop has already ended the others and does not stop this one.
		started.kill()
		return nil, fmt.Errorf("starting %s: the plane has been stopped", name)
	}
	p.processes = append(p.processes, started)
	return started, nil
}

// environment returns the environment of the plane's processes: the caller's, but with a home and a temporary folder inside the plane's own, so that
// they read and write nothing in the caller's.
func (p *Plane) environment(extra ...string) []string {
	var environment []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "KUBE") || strings.HasPrefix(name, "HELM_") || strings.HasPrefix(name, "XDG_") {
			continue
		}
		environment = append(environment, variable)
	}
	return append(append(environment, "HOME="+p.folder.file("home"), "TMPDIR="+p.folder.file("tmp")), extra...)
}

// kill ends the process and all of its group at once, and waits. There is nothing to shut down in order: the data is deleted with the plane.
func (s *process) kill() {
	select {
	case <-s.ended:
		// Its process ID may be that of another process by now.
		return
	default:
	}
	// The group may no longer exist.
	_ = syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL)
	<-s.ended
}

// askLimit bounds one check of await: another process may own the port, accept connections and send nothing.
const askLimit = 3 * time.Second

// await calls ready until it returns no error. It fails early when the process ends. It kills the process when its port is taken, because not every
// component ends by itself then.
func (s *process) await(ctx context.Context, ready func(context.Context) error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, askLimit)
		err := ready(attempt)
		cancel()
		if err == nil {
			return nil
		}
		if s.lostPort() {
			s.kill()
			return &endedError{process: s.name, log: s.tail(), lostPort: true}
		}
		select {
		case <-s.ended:
			return &endedError{process: s.name, log: s.tail(), lostPort: s.lostPort()}
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w (last answer: %w); its log ends with:\n%s", s.name, context.Cause(ctx), err, s.tail())
		case <-tick.C:
		}
	}
}

// lostPort reports whether the log contains an error that another process took the port that was free when it was chosen.
func (s *process) lostPort() bool {
	log, err := os.ReadFile(s.logPath)
	return err == nil && bytes.Contains(log, []byte("address already in use"))
}

// tail returns the last lines of the log.
func (s *process) tail() string {
	const most = 4 << 10
	file, err := os.Open(s.logPath)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > most {
		if _, err := file.Seek(-most, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(content))
}

// endedError reports that a process ended before it was ready, with the end of its log.
type endedError struct {
	process, log string
	// lostPort is set when another port would help.
	lostPort bool
}

func (e *endedError) Error() string {
	return fmt.Sprintf("%s ended before it was ready; its log ends with:\n%s", e.process, e.log)
}
