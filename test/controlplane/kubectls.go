package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// kubectls are processes that run kubectl's commands one after another (tools/kubernetes/kubectls), because a process for each command uses most of its
// time for starting.
type kubectls struct {
	mutex   sync.Mutex
	idle    []*kubectlProcess
	stopped bool
}

// kubectlProcess is one of them. It runs one command at a time.
type kubectlProcess struct {
	command  *exec.Cmd
	requests io.WriteCloser
	answers  *bufio.Reader
	// output is what the process itself writes, such as a panic.
	output bytes.Buffer
	// folder contains the files stdin, stdout and stderr of its present command.
	folder string
}

// kubectlCommands are the commands that kubectls runs. The others, plugins among them, may replace or outlive the process.
var kubectlCommands = []string{
	"annotate", "apply", "auth", "create", "delete", "describe", "get", "label", "patch", "replace", "rollout", "scale", "set", "version", "wait",
}

// kubectlsRun reports whether kubectls runs a command.
func kubectlsRun(arguments []string) bool {
	first := slices.IndexFunc(arguments, func(argument string) bool { return !strings.HasPrefix(argument, "-") })
	return first >= 0 && slices.Contains(kubectlCommands, arguments[first])
}

// run runs one command in a process that is idle, or in a new one.
func (k *kubectls) run(ctx context.Context, p *Plane, as *User, stdin string, arguments []string) (Result, error) {
	process, err := k.take(ctx, p)
	if err != nil {
		return Result{}, err
	}
	result, ended, err := process.run(ctx, as, stdin, arguments)
	if ended || err != nil {
		process.end()
		return result, err
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.stopped {
		process.end()
	} else {
		k.idle = append(k.idle, process)
	}
	return result, nil
}

func (k *kubectls) take(ctx context.Context, p *Plane) (*kubectlProcess, error) {
	k.mutex.Lock()
	if last := len(k.idle) - 1; last >= 0 {
		process := k.idle[last]
		k.idle = k.idle[:last]
		k.mutex.Unlock()
		return process, nil
	}
	k.mutex.Unlock()
	path, err := p.tool(ctx, "kubectls")
	if err != nil {
		return nil, err
	}
	process := &kubectlProcess{}
	if process.folder, err = os.MkdirTemp(p.folder.file("tmp"), "kubectl-"); err != nil {
		return nil, fmt.Errorf("making a folder for kubectl: %w", err)
	}
	// It ends when its standard input does, with the process of the test at the latest.
	process.command = exec.CommandContext(context.Background(), path)
	process.command.Env = p.environment("GOGC=400")
	process.command.Stderr = &process.output
	var output io.ReadCloser
	if process.requests, err = process.command.StdinPipe(); err == nil {
		output, err = process.command.StdoutPipe()
	}
	if err == nil {
		err = process.command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting kubectl: %w", err)
	}
	process.answers = bufio.NewReader(output)
	return process, nil
}

// run runs one command, and reports whether the process has ended with it.
func (k *kubectlProcess) run(ctx context.Context, as *User, stdin string, arguments []string) (result Result, ended bool, err error) {
	files := map[string]string{"stdin": stdin, "stdout": "", "stderr": ""}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(k.folder, name), []byte(content), 0o600); err != nil {
			return Result{}, false, fmt.Errorf("preparing kubectl: %w", err)
		}
	}
	folder, err := os.Getwd()
	if err != nil {
		return Result{}, false, fmt.Errorf("preparing kubectl: %w", err)
	}
	request, err := json.Marshal(map[string]any{
		"arguments": arguments, "folder": folder, "kubeconfig": as.Kubeconfig,
		"stdin": filepath.Join(k.folder, "stdin"), "stdout": filepath.Join(k.folder, "stdout"), "stderr": filepath.Join(k.folder, "stderr"),
	})
	if err != nil {
		return Result{}, false, fmt.Errorf("preparing kubectl: %w", err)
	}
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		_, err := k.requests.Write(append(request, '\n'))
		var line string
		if err == nil {
			line, err = k.answers.ReadString('\n')
		}
		answers <- answer{line, err}
	}()
	var got answer
	select {
	case <-ctx.Done():
		return Result{Code: -1}, true, fmt.Errorf("running kubectl %s: %w", strings.Join(arguments, " "), ctx.Err())
	case got = <-answers:
	}
	if got.err == nil {
		result.Code, got.err = strconv.Atoi(strings.TrimSpace(got.line))
	} else {
		var exited *exec.ExitError
		ended = true
		if err := k.command.Wait(); errors.As(err, &exited) && exited.Exited() && k.output.Len() == 0 {
			result.Code, got.err = exited.ExitCode(), nil
		}
	}
	if got.err != nil {
		return Result{}, true, fmt.Errorf("running kubectl %s: %w\n%s", strings.Join(arguments, " "), got.err, k.output.String())
	}
	for name, content := range map[string]*string{"stdout": &result.Stdout, "stderr": &result.Stderr} {
		read, err := os.ReadFile(filepath.Join(k.folder, name))
		if err != nil {
			return Result{}, ended, fmt.Errorf("reading what kubectl wrote: %w", err)
		}
		*content = string(read)
	}
	return result, ended, nil
}

// end kills the process, which may wait for the API server.
func (k *kubectlProcess) end() {
	_ = k.command.Process.Kill()
	_ = k.command.Wait()
	_ = os.RemoveAll(k.folder)
}

// stop ends the processes that are idle; the others end with their command.
func (k *kubectls) stop() {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.stopped = true
	for _, each := range k.idle {
		each.end()
	}
	k.idle = nil
}
