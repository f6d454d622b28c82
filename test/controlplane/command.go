package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/vmstencil/stencil/test/product"
)

// Result is the result of a command line tool.
type Result struct {
	Stdout, Stderr string
	// Code is the exit code; 0 is success.
	Code int
}

// Kubectl runs the real kubectl, or its code in a process that stays, as the given user, as the plane's administrator when nil, with stdin as its input. An exit code
// other than 0 is a result, not an error. A replace that conflicts with the write of a controller is repeated, as a user would.
func (p *Plane) Kubectl(ctx context.Context, as *User, stdin string, arguments ...string) (Result, error) {
	for attempt := 1; ; attempt++ {
		out, err := p.kubectl(ctx, as, stdin, arguments)
		conflict := out.Code != 0 && slices.Contains(arguments, "replace") && strings.Contains(out.Stderr, "(Conflict)")
		if err != nil || !conflict || attempt == replaceAttempts {
			return out, err
		}
	}
}

func (p *Plane) kubectl(ctx context.Context, as *User, stdin string, arguments []string) (Result, error) {
	if !kubectlsRun(arguments) {
		return p.run(ctx, "kubectl", as, stdin, arguments)
	}
	product.Depend()
	if as == nil {
		as = p.admin
	}
	return p.kubectls.run(ctx, p, as, stdin, arguments)
}

// replaceAttempts is how often kubectl replace is run at most. A manifest with a stale resource version always conflicts.
const replaceAttempts = 5

// Helm runs the real helm as the plane's administrator. An exit code other than 0 is a result, not an error.
func (p *Plane) Helm(ctx context.Context, arguments ...string) (Result, error) {
	return p.run(ctx, "helm", nil, "", arguments)
}

func (p *Plane) run(ctx context.Context, tool string, as *User, stdin string, arguments []string) (Result, error) {
	product.Depend()
	path, err := p.tool(ctx, tool)
	if err != nil {
		return Result{}, err
	}
	if as == nil {
		as = p.admin
	}
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, path, arguments...)
	// These processes run for some seconds: less garbage collection saves time, but none costs twice as much, because new memory is slow in virtual machines.
	command.Env = p.environment("KUBECONFIG="+as.Kubeconfig, "GOGC=400")
	command.Stdin = strings.NewReader(stdin)
	command.Stdout, command.Stderr = &stdout, &stderr
	// A child of the tool (a plugin, an editor) that holds its output open must not block the caller.
	command.WaitDelay = 5 * time.Second
	err = command.Run()
	result := Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: command.ProcessState.ExitCode()}
	var exited *exec.ExitError
	if ctx.Err() == nil && errors.As(err, &exited) {
		return result, nil
	}
	if err != nil {
		return result, fmt.Errorf("running %s %s: %w", tool, strings.Join(arguments, " "), err)
	}
	return result, nil
}
