package defaults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/client"
)

// Timeouts of a defaulter that is started for one request.
const (
	// startLimit is long: the capabilities of QEMU are queried first.
	startLimit   = time.Minute
	pollInterval = 20 * time.Millisecond
	stopLimit    = 5 * time.Second
)

// request sends the request to the running defaulter, or to one that it starts.
func (f *filling) request(ctx context.Context, request *defaulting.Request) (*defaulting.Response, error) {
	if f.socket != "" {
		return client.New(f.socket).Defaults(ctx, request)
	}
	path, err := exec.LookPath(f.binary)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("%w: name a stencil-defaulter with --defaulter, or the socket of one that runs with --socket", err))
	}
	folder, err := os.MkdirTemp("", "stencilctl-defaults-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the defaulter: %w", err)
	}
	response, err := requestStarted(ctx, path, folder, request)
	return response, errors.Join(err, os.RemoveAll(folder))
}

func requestStarted(ctx context.Context, path, folder string, request *defaulting.Request) (*defaulting.Response, error) {
	// A defaulter that is started as root changes to another user, which needs access to its
	// folder.
	if err := os.Chmod(folder, 0o755); err != nil {
		return nil, fmt.Errorf("opening the defaulter's folder: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	socket := filepath.Join(folder, "defaulter.sock")
	process := exec.CommandContext(ctx, path, "--socket", socket, "--root", filepath.Join(folder, "state"))
	process.Cancel = func() error { return process.Process.Signal(syscall.SIGTERM) }
	process.WaitDelay = stopLimit
	var log bytes.Buffer
	process.Stdout, process.Stderr = &log, &log
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("starting the defaulter: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// An exit on request is ignored. After any other exit, the log shows the cause.
		_ = process.Wait()
	}()
	response, err := poll(ctx, client.New(socket), ended, request)
	cancel()
	<-ended
	if err != nil && !isProblem(err) {
		err = fmt.Errorf("%w\n%s", err, bytes.TrimSpace(log.Bytes()))
	}
	return response, err
}

// poll retries the request until there is a response.
func poll(ctx context.Context, c *client.Client, ended <-chan struct{}, request *defaulting.Request) (*defaulting.Response, error) {
	for {
		response, err := c.Defaults(ctx, request)
		var problem *defaulting.Problem
		if err == nil || errors.As(err, &problem) && problem.Status == http.StatusUnprocessableEntity {
			return response, err
		}
		select {
		case <-ended:
			return nil, errors.New("the defaulter has ended")
		case <-ctx.Done():
			return nil, fmt.Errorf("the defaulter does not answer: %w", err)
		case <-time.After(pollInterval):
		}
	}
}

func isProblem(err error) bool {
	var problem *defaulting.Problem
	return errors.As(err, &problem)
}
