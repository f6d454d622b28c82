package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args, cli.Standard())
	stop()
	os.Exit(code)
}

// run is main with the process state as parameters.
func run(ctx context.Context, arguments []string, streams cli.Streams) int {
	command := newCommand(arguments[0], streams)
	command.SetArgs(arguments[1:])
	err := command.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, cli.ErrFindings) && !errors.Is(err, cli.ErrUndecided) {
		fmt.Fprintf(streams.Err, "%s: %v\n", displayName(arguments[0]), err)
	}
	return cli.ExitCode(err)
}
