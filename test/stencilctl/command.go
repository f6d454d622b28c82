package stencilctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/vmstencil/stencil/test/product"
)

// Binary returns the path of the command; see [product.Binary].
func Binary(ctx context.Context) (string, error) { return product.Binary(ctx, "stencilctl") }

// Command is a command line of a user.
type Command struct {
	// Binary is the path of the command, as Binary returns it.
	Binary string
	// Kubeconfig is the path of the user's kubeconfig.
	Kubeconfig string
	// Line is what follows the name of the command, words separated by spaces. Arguments
	// follow it, as they are.
	Line      string
	Arguments []string
	// Stdin is piped into it. It cannot be used on a terminal.
	Stdin string
	// Folder is where it runs; that of the test when empty.
	Folder string
	// Environment are further variables, NAME=VALUE.
	Environment []string
}

// Result is the exit code and the output of a command.
type Result struct {
	Code int
	// Output is what was printed to the standard output, or shown on the terminal.
	Output string
	// Problems is what was printed to standard error; empty on a terminal, which shows
	// both.
	Problems string
}

// command prepares the process. The environment of the test does not affect what is printed.
func (c Command) command(ctx context.Context) *exec.Cmd {
	product.Depend()
	command := exec.CommandContext(ctx, c.Binary, append(strings.Fields(c.Line), c.Arguments...)...)
	command.Dir = c.Folder
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); name != "NO_COLOR" && name != "TERM" && name != "KUBECONFIG" {
			command.Env = append(command.Env, variable)
		}
	}
	command.Env = append(command.Env, "KUBECONFIG="+c.Kubeconfig, "TERM=xterm")
	command.Env = append(command.Env, c.Environment...)
	return command
}

// Run runs the command with pipes.
func (c Command) Run(ctx context.Context) (Result, error) {
	command := c.command(ctx)
	var output, problems bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(c.Stdin), &output, &problems
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		return Result{}, fmt.Errorf("running stencilctl: %w", err)
	}
	return Result{Code: command.ProcessState.ExitCode(), Output: output.String(), Problems: problems.String()}, nil
}
