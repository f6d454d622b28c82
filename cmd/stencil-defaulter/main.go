package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/go-logr/logr"
)

// Exit codes.
const (
	exitFailure = 1
	exitUsage   = 2
)

// The heap is small and its garbage short-lived, so collecting early costs little. The sidecar
// runs next to every manager.
const (
	gcPercent   = 40
	memoryLimit = 56 << 20
)

func main() {
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memoryLimit)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main with the process state as parameters.
func run(ctx context.Context, arguments []string, in io.Reader, out, stderr io.Writer) int {
	if len(arguments) > 0 && arguments[0] == workerCommand {
		// The supervisor handles signals; the worker ends with its input.
		if err := runWorker(context.WithoutCancel(ctx), arguments[1:], in, out, stderr, nil); err != nil {
			fmt.Fprintln(stderr, "stencil-defaulter worker:", err)
			return exitFailure
		}
		return 0
	}
	o, err := parse(arguments, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "stencil-defaulter:", err)
		return exitUsage
	case o.version:
		fmt.Fprintln(out, buildVersion())
		return 0
	}
	logger := logr.FromSlogHandler(slog.NewJSONHandler(stderr, nil))
	if err := serve(ctx, o, logger); err != nil {
		logger.Error(err, "stencil-defaulter failed")
		return exitFailure
	}
	return 0
}
