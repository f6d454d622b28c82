package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/vmstencil/stencil/buildinfo"
)

// Exit codes.
const (
	exitFailure = 1
	exitUsage   = 2
)

// gcPercent is how much the heap may grow, in percent, before garbage is collected:
// compiled templates live long.
const gcPercent = 50

// version is set by the linker in release builds: -ldflags "-X main.version=v1.2.3".
var version string

func currentBuild() buildinfo.Build { return buildinfo.Current("stencil-apiserver", version) }

func main() {
	os.Exit(run(ctrl.SetupSignalHandler(), os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process around it.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) int {
	o, err := parse(arguments, stderr)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "stencil-apiserver:", err)
		return exitUsage
	case o.version:
		fmt.Fprintln(stdout, currentBuild())
		return 0
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	logger := zap.New(zap.UseFlagOptions(&o.zap), zap.WriteTo(stderr))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("kubernetes"))

	config, err := restConfig(o.kubeconfig)
	if err != nil {
		logger.Error(err, "finding the API server failed")
		return exitFailure
	}
	if err := serve(ctx, o, config, logger); err != nil {
		logger.Error(err, "stencil-apiserver failed")
		return exitFailure
	}
	return 0
}

// restConfig reaches the API server. Its own limits and those of the requests that
// come in are enough, so there is none on the client's side.
func restConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "stencil-apiserver/" + currentBuild().Version
	config.QPS = -1
	return config, nil
}
