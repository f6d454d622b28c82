package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vmstencil/stencil/test/deadline"
	"github.com/vmstencil/stencil/test/product"
)

// stopTimeout bounds the time between SIGTERM and SIGKILL in Stop. It leaves room for the default --shutdown-delay and --shutdown-timeout of
// stencil-manager, and for the --request-timeout of stencil-apiserver, which is the longest that its connections delay its end.
const stopTimeout = 75 * time.Second

// stacksTimeout bounds the time in which a process that did not stop writes the stacks of its goroutines.
const stacksTimeout = 5 * time.Second

// Process is a stencil-manager that runs, or has ended.
type Process struct {
	options Options
	command *exec.Cmd
	log     *log
	done    chan struct{}
	err     error       // what Wait returned; read after done is closed
	killed  atomic.Bool // by Kill

	// A second SIGTERM would make the process end at once.
	terminate    sync.Once
	terminateErr error
}

// Start starts a stencil-manager and waits until it is ready. The process is killed when ctx ends.
func Start(ctx context.Context, given Options) (*Process, error) {
	options, err := given.withDefaults()
	if err != nil {
		return nil, err
	}
	if options.Binary == "" && options.Container == nil {
		if options.Binary, err = product.Binary(ctx, string(options.Program)); err != nil {
			return nil, err
		}
	}

	process := &Process{options: options, log: newLog(options.Log), done: make(chan struct{})}
	if contained := options.Container; contained != nil {
		process.command = exec.CommandContext(ctx, contained.Entrypoint, options.arguments()...)
		process.command.Env, process.command.Dir = contained.Env, "/"
		process.command.SysProcAttr = contained.attributes()
	} else {
		process.command = exec.CommandContext(ctx, options.Binary, options.arguments()...)
		process.command.Env = append(os.Environ(), options.environment()...)
		process.command.SysProcAttr = dieWithParent()
	}
	process.command.Stdout, process.command.Stderr = process.log, process.log

	started := make(chan error, 1)
	go process.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", options.Program, err)
	}
	if options.WithoutWaiting {
		return process, nil
	}
	if err := process.WaitReady(ctx); err != nil {
		_ = process.Kill()
		return nil, err
	}
	return process, nil
}

// run starts the command and waits for its end on one thread: the thread that started a process has to
// live as long as the process does, see dieWithParent.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer close(p.done)
	if contained := p.options.Container; contained != nil {
		// The thread stays locked, so that it ends with this function.
		if err := contained.enter(); err != nil {
			started <- err
			return
		}
	} else {
		defer runtime.UnlockOSThread()
	}
	if err := p.command.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.command.Wait()
}

// WebhookAddress is the host:port on which the webhooks are served.
func (p *Process) WebhookAddress() string { return p.options.WebhookAddress }

// WebhookURL is the https URL, without a path, at which the webhooks are served.
func (p *Process) WebhookURL() string { return "https://" + p.options.WebhookAddress }

// MetricsURL is where Prometheus would scrape the process.
func (p *Process) MetricsURL() string { return "http://" + p.options.MetricsAddress + "/metrics" }

// HealthURL is the URL, without a path, of /healthz and /readyz.
func (p *Process) HealthURL() string {
	if p.options.Program == StencilAPIServer {
		return p.WebhookURL()
	}
	return "http://" + p.options.HealthAddress
}

// PID is the process id.
func (p *Process) PID() int { return p.command.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Logs returns what the process has written so far, standard output and standard error interleaved.
func (p *Process) Logs() string { return p.log.String() }

// WaitReady waits until the process is ready, has ended, ctx has ended, or Options.ReadyTimeout is over.
func (p *Process) WaitReady(ctx context.Context) error {
	ctx, cancel := deadline.WithTimeout(ctx, string(p.options.Program)+" is ready", p.options.ReadyTimeout)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		notReady := p.Ready(ctx)
		if notReady == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it was ready: %w\n%s", p.options.Program, p.exit(), p.Logs())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w: %w\n%s", p.options.Program, context.Cause(ctx), notReady, p.Logs())
		case <-ticker.C:
		}
	}
}

// Poll calls done at every step until it returns true or an error, the process has ended, or the limit is over.
func (p *Process) Poll(ctx context.Context, step, limit time.Duration, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	for {
		if finished, err := done(); err != nil || finished {
			return err
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended", p.options.Program)
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// Terminate sends SIGTERM, once, and returns; Done is closed when the process has ended.
func (p *Process) Terminate() error {
	p.terminate.Do(func() { p.terminateErr = p.signal(syscall.SIGTERM) })
	return p.terminateErr
}

// Stop sends SIGTERM and waits for the end. A process that does not end in time is killed and an error returned; an exit status other than zero is an
// error, too. Stopping a process that has already ended is an error only if it ended by itself with an error.
func (p *Process) Stop() error {
	if err := p.Terminate(); err != nil {
		return err
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-p.done:
		if p.killed.Load() {
			return nil
		}
		return p.err
	case <-timer.C:
		return errors.Join(fmt.Errorf("%s did not stop within %s\n%s", p.options.Program, stopTimeout, p.stacks()), p.Kill())
	}
}

// stacks makes the process end and write the stacks of its goroutines, and returns its logs with them.
func (p *Process) stacks() string {
	if p.signal(syscall.SIGQUIT) == nil {
		select {
		case <-p.done:
		case <-time.After(stacksTimeout):
		}
	}
	return p.Logs()
}

// Kill ends the process as the failure of its host would, and waits until it has ended.
func (p *Process) Kill() error {
	p.killed.Store(true)
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

func (p *Process) signal(signal os.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s: %w", signal, p.options.Program, err)
	}
	return nil
}

// exit returns an error that describes how the process ended.
func (p *Process) exit() error {
	if p.err != nil {
		return p.err
	}
	return errors.New("exit status 0")
}
