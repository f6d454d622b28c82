package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/vmstencil/stencil/internal/buildinfo"
)

// version is set by the linker in release builds: -ldflags "-X main.version=v1.2.3".
var version string

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with the process state as parameters.
func run(arguments []string, stdout, stderr io.Writer) int {
	build := buildinfo.Current("stencil-mover", version)
	flags := pflag.NewFlagSet(build.Program, pflag.ContinueOnError)
	flags.SetOutput(stderr)
	showVersion := flags.Bool("version", false, "Print the version and exit.")
	switch err := flags.Parse(arguments); {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v\n", build.Program, err)
		return 2
	case *showVersion:
		fmt.Fprintln(stdout, build)
		return 0
	}
	fmt.Fprintln(stderr, "stencil-mover: there is no task")
	return 1
}
