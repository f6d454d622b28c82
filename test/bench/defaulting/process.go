package defaulting

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vmstencil/stencil/defaulting/client"
	"github.com/vmstencil/stencil/test/bench/machine"
)

// build makes the binary.
func build(ctx context.Context, root, folder string) (string, error) {
	binary := filepath.Join(folder, "stencil-defaulter")
	command := exec.CommandContext(ctx, "go", "build", "-tags", "libvirt_dlopen", "-o", binary, ".")
	command.Dir = filepath.Join(root, "cmd", "stencil-defaulter")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building stencil-defaulter: %w\n%s", err, output)
	}
	return binary, nil
}

// process is a running stencil-defaulter.
type process struct {
	command *exec.Cmd
	client  *client.Client
	// plain sends requests as the client does, for any path.
	plain *http.Client
}

// start runs the binary and waits until it answers a request. It returns how long that took.
func start(ctx context.Context, binary, folder string, log io.Writer) (*process, time.Duration, error) {
	socket := filepath.Join(folder, "defaulter.sock")
	command := exec.Command(binary, "--socket", socket, "--root", filepath.Join(folder, "state"))
	command.Stderr = log
	begin := time.Now()
	if err := command.Start(); err != nil {
		return nil, 0, fmt.Errorf("starting stencil-defaulter: %w", err)
	}
	p := &process{command: command, client: client.New(socket), plain: &http.Client{Transport: &http.Transport{
		DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}}
	for {
		_, err := p.client.Raw(ctx, request(0, "first"))
		if err == nil {
			return p, time.Since(begin), nil
		}
		if time.Since(begin) > time.Minute || ctx.Err() != nil {
			return nil, 0, errors.Join(fmt.Errorf("stencil-defaulter does not answer: %w", err), p.stop())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// idle requests the health of the process, which costs only a request and a response.
func (p *process) idle(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://defaulter/healthz", nil)
	if err != nil {
		return fmt.Errorf("asking for health: %w", err)
	}
	response, err := p.plain.Do(request)
	if err != nil {
		return fmt.Errorf("asking for health: %w", err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking for health: %s: %w", response.Status, err)
	}
	return nil
}

// stop ends the process, and with it its worker.
func (p *process) stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("ending stencil-defaulter: %w", err)
	}
	if err := p.command.Wait(); err != nil {
		return fmt.Errorf("ending stencil-defaulter: %w", err)
	}
	return nil
}

// resident is the resident set of the supervisor and its worker, in bytes.
func (p *process) resident() (int64, error) {
	total := int64(0)
	for _, pid := range append(children(p.command.Process.Pid), p.command.Process.Pid) {
		memory, err := machine.MemoryOf(pid)
		if err != nil {
			return 0, err
		}
		total += memory.Resident
	}
	return total, nil
}

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
		for _, field := range strings.Fields(string(bytes.TrimSpace(content))) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
