package child

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is a child that runs.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	send    *json.Encoder
	// answers of the child. It is closed when the child has ended, after ended has its state.
	answers chan answer
	ended   *os.ProcessState
	errors  *excerpt
	// memory is what a policy may use, schemas the digest of those that the child uses.
	memory  int64
	schemas [sha256.Size]byte
	// cpu is the CPU time that the child had used when it answered last.
	cpu time.Duration
	// used is true if the child has worked on a policy.
	used bool
}

// start starts a child and returns when it is ready.
func start(ctx context.Context, program []string, timeout time.Duration, s settings) (*process, error) {
	p := &process{errors: &excerpt{}, memory: s.MemoryBytes, schemas: s.Schemas.Digest(), answers: make(chan answer, 1)}
	p.command = exec.Command(program[0], program[1:]...)
	p.command.Env = []string{"GOMAXPROCS=1", "GOTRACEBACK=single"}
	p.command.Dir = "/"
	p.command.Stderr = p.errors
	p.command.SysProcAttr = attributes()
	var err error
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go p.run(out, started)
	if err := <-started; err != nil {
		return nil, err
	}
	p.send = json.NewEncoder(p.in)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// If the child has ended, there is no answer.
	_ = p.write(s, timeout)
	if _, err := p.next(ctx); err != nil {
		p.end()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("it was not ready within %s", timeout)
		}
		return nil, fmt.Errorf("%s: %s", p.ended, p.errors)
	}
	return p, nil
}

// run is the goroutine of a child from its start to its end. The kernel ends the child with the thread that has started it.
func (p *process) run(out io.Reader, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.answers)
	err := p.command.Start()
	started <- err
	if err != nil {
		return
	}
	answers := json.NewDecoder(out)
	for {
		var a answer
		if answers.Decode(&a) != nil {
			break
		}
		p.answers <- a
	}
	p.kill()
	_ = p.command.Wait()
	p.ended = p.command.ProcessState
}

// write sends a message, which a child reads at once.
func (p *process) write(message any, timeout time.Duration) error {
	if pipe, ok := p.in.(interface{ SetWriteDeadline(time.Time) error }); ok {
		if err := pipe.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
	}
	return p.send.Encode(message)
}

// errEnded is the error of a child that has ended.
var errEnded = errors.New("the process has ended")

// next returns the next answer.
func (p *process) next(ctx context.Context) (answer, error) {
	select {
	case a, running := <-p.answers:
		if !running {
			return answer{}, errEnded
		}
		p.cpu = a.CPU
		return a, nil
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

// kill ends a child.
func (p *process) kill() { _ = p.command.Process.Kill() }

// end ends a child and returns when it has ended.
func (p *process) end() {
	p.kill()
	for range p.answers { //nolint:revive // Until it is closed.
	}
	_ = p.in.Close()
}

// cause returns why a child has ended that was not killed by kill.
func (p *process) cause() end {
	status, _ := p.ended.Sys().(syscall.WaitStatus)
	text := p.errors.String()
	switch {
	case strings.Contains(text, "out of memory") || strings.Contains(text, "cannot allocate memory") || strings.Contains(text, "failed to create new OS thread"):
		return endMemory
	case strings.Contains(text, "stack exceeds") || strings.Contains(text, "stack overflow"):
		return endStack
	case status.Signaled() && status.Signal() == syscall.SIGKILL:
		return endKilled
	default:
		return endCrashed
	}
}

// excerpt is the beginning of what is written to it.
type excerpt struct{ text bytes.Buffer }

const maxExcerpt = 4 << 10

// Write implements io.Writer.
func (e *excerpt) Write(text []byte) (int, error) {
	e.text.Write(text[:min(len(text), maxExcerpt-e.text.Len())])
	return len(text), nil
}

func (e *excerpt) String() string { return strings.TrimSpace(e.text.String()) }
