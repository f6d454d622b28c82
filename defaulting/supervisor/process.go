package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/vmstencil/stencil/defaulting/worker"
)

// process is one run of the worker.
type process struct {
	pid   int
	facts worker.Facts
	input *os.File

	writing sync.Mutex
	mu      sync.Mutex
	waiting map[uint64]chan worker.Frame
	next    uint64
	// killed means that the worker is being ended: a request sent to it now did not cause its
	// death.
	killed bool
	// ended is closed when the worker no longer answers.
	ended chan struct{}
}

// errEnded is returned for a request during which the worker died.
var errEnded = errors.New("the worker died")

// start runs the worker and waits until it is ready.
func start(ctx context.Context, command Command, readyTimeout time.Duration) (*process, error) {
	requests, input, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe to the worker: %w", err)
	}
	output, answers, err := os.Pipe()
	if err != nil {
		_, _ = requests.Close(), input.Close()
		return nil, fmt.Errorf("making a pipe from the worker: %w", err)
	}
	pid, err := syscall.ForkExec(command.Path, append([]string{command.Path}, command.Args...), &syscall.ProcAttr{
		Env:   command.Env,
		Files: []uintptr{requests.Fd(), answers.Fd(), os.Stderr.Fd()},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	_, _ = requests.Close(), answers.Close()
	if err != nil {
		_, _ = input.Close(), output.Close()
		return nil, fmt.Errorf("starting the worker: %w", err)
	}
	p := &process{pid: pid, input: input, waiting: map[uint64]chan worker.Frame{}, ended: make(chan struct{})}
	ready := make(chan worker.Frame, 1)
	p.waiting[0] = ready
	go p.receive(output)

	timeout := time.NewTimer(readyTimeout)
	defer timeout.Stop()
	select {
	case frame, ok := <-ready:
		if !ok || frame.Kind != worker.Ready {
			p.kill()
			return nil, fmt.Errorf("starting the worker: %w before it was ready", errEnded)
		}
		if err := json.Unmarshal(frame.Payload, &p.facts); err != nil {
			p.kill()
			return nil, fmt.Errorf("reading the worker's description of libvirt: %w", err)
		}
		return p, nil
	case <-ctx.Done():
		p.end()
		return nil, ctx.Err()
	case <-timeout.C:
		p.kill()
		return nil, fmt.Errorf("starting the worker: it was not ready after %s", readyTimeout)
	}
}

// receive delivers responses until there are no more.
func (p *process) receive(output *os.File) {
	defer func() { _ = output.Close() }()
	reader := bufio.NewReaderSize(output, 64<<10)
	for {
		frame, err := worker.Read(reader)
		p.mu.Lock()
		if err != nil {
			for number, waiter := range p.waiting {
				close(waiter)
				delete(p.waiting, number)
			}
			p.waiting = nil
			p.mu.Unlock()
			close(p.ended)
			if !errors.Is(err, io.EOF) {
				p.kill()
			}
			return
		}
		if waiter, ok := p.waiting[frame.Number]; ok {
			delete(p.waiting, frame.Number)
			waiter <- frame
		}
		p.mu.Unlock()
	}
}

// send sends a request to the worker. The channel is closed without a response when the worker
// dies.
func (p *process) send(kind worker.Kind, xml string) (<-chan worker.Frame, error) {
	answer := make(chan worker.Frame, 1)
	p.mu.Lock()
	if p.waiting == nil || p.killed {
		p.mu.Unlock()
		return nil, errEnded
	}
	p.next++
	number := p.next
	p.waiting[number] = answer
	p.mu.Unlock()

	p.writing.Lock()
	defer p.writing.Unlock()
	if err := (worker.Frame{Kind: kind, Number: number, Payload: []byte(xml)}).Write(p.input); err != nil {
		return nil, errEnded
	}
	return answer, nil
}

// endLimit bounds the wait for a killed worker.
const endLimit = 2 * time.Second

// end kills the worker and waits, up to endLimit, until it has ended and no longer writes to its
// folder.
func (p *process) end() {
	p.kill()
	select {
	case <-p.ended:
	case <-time.After(endLimit):
	}
}

// kill kills the worker and its process group. On a busy host it may take a while to end; no
// request is sent to it from now on.
func (p *process) kill() {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	_ = syscall.Kill(p.pid, syscall.SIGKILL)
}
