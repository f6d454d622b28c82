package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/vmstencil/stencil/buildinfo"
)

// Exit codes.
const (
	exitFailure = 1
	exitUsage   = 2
)

// version is set by the linker in release builds: -ldflags "-X main.version=v1.2.3".
var version string

func currentBuild() buildinfo.Build { return buildinfo.Current("stencil-manager", version) }

// gcPercent is how much the heap may grow, in percent, before garbage is collected.
const gcPercent = 50

func main() {
	os.Exit(run(ctrl.SetupSignalHandler(), os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// run is main without the process around it.
func run(ctx context.Context, arguments []string, environment lookup, stdout, stderr io.Writer) int {
	options, err := parse(arguments, environment, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "stencil-manager:", err)
		return exitUsage
	case options.version:
		fmt.Fprintln(stdout, currentBuild())
		return 0
	}

	if _, set := environment("GOGC"); !set {
		// Thousands of compiled templates live long and are hardly ever replaced:
		// room for as much garbage again would be memory for nothing.
		debug.SetGCPercent(gcPercent)
	}

	logger := zap.New(zap.UseFlagOptions(&options.zap), zap.WriteTo(stderr))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("client-go"))

	restConfig, err := config.GetConfig()
	if err != nil {
		logger.Error(err, "finding the API server failed")
		return exitFailure
	}
	restConfig.UserAgent = "stencil-manager/" + currentBuild().Version
	if options.kubeAPIQPS >= 0 {
		restConfig.QPS, restConfig.Burst = float32(options.kubeAPIQPS), options.kubeAPIBurst
	}
	if err := serve(ctx, options, restConfig, logger); err != nil {
		logger.Error(err, "stencil-manager failed")
		return exitFailure
	}
	return 0
}
