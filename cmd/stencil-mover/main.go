package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/vmstencil/stencil/internal/buildinfo"
	"github.com/vmstencil/stencil/internal/mover"
	"github.com/vmstencil/stencil/transfer"
)

// version is set by the linker in release builds: -ldflags "-X main.version=v1.2.3".
var version string

const (
	// memoryLimit is for Go's heap, of the 128 MiB of the container. Buffers grow with the number of processors, of which so many suffice for a disk.
	memoryLimit = 96 << 20
	processors  = 4
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(memoryLimit)
	}
	if runtime.GOMAXPROCS(0) > processors {
		runtime.GOMAXPROCS(processors)
	}
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are the settings of the process.
type options struct {
	listen         string
	root           string
	taskDigest     string
	terminationLog string
	grace          time.Duration
}

// run is main with the process state as parameters.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) int {
	build := buildinfo.Current("stencil-mover", version)
	var o options
	flags := pflag.NewFlagSet(build.Program, pflag.ContinueOnError)
	flags.SetOutput(stderr)
	showVersion := flags.Bool("version", false, "Print the version and exit.")
	flags.StringVar(&o.listen, "listen", net.JoinHostPort(os.Getenv("POD_IP"), strconv.Itoa(transfer.Port)), "Address on which the state and the package are served over HTTPS.")
	flags.StringVar(&o.root, "root", "", "Folder before the paths of all mounts, for tests.")
	flags.StringVar(&o.taskDigest, "task-digest", "", "Digest of the task, sha256:HEX. If it is empty, every task is worked on.")
	flags.StringVar(&o.terminationLog, "termination-log", "/dev/termination-log", "File that the reason of a failure is written to, if it exists; below --root.")
	flags.DurationVar(&o.grace, "acknowledge-timeout", 10*time.Minute, "How long a mover that has failed waits for the manager. One that has succeeded waits until the manager has seen it.")
	err := flags.Parse(arguments)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v\n", build.Program, err)
		return 2
	case *showVersion:
		fmt.Fprintln(stdout, build)
		return 0
	}
	if err := serve(ctx, o); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", build.Program, err)
		terminate(o, err.Error())
		return 1
	}
	return 0
}

// terminate writes a message for the status of the pod.
func terminate(o options, message string) {
	const most = 4096
	path := mover.Folders{Root: o.root}.TerminationLog(o.terminationLog)
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return
	}
	_ = os.WriteFile(path, []byte(message[:min(len(message), most)]), 0o644)
}
