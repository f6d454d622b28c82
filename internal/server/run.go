package server

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/vmstencil/stencil/internal/buildinfo"
)

// Exit codes.
const (
	ExitFailure = 1
	ExitUsage   = 2
)

// Settings are the settings of Run from the command line.
type Settings struct {
	// Version requests the version and nothing else.
	Version bool
	// Log are the options of the log; see BindLogging.
	Log *zap.Options
	// Config returns the configuration for clients of the API server.
	Config func() (*rest.Config, error)
	// Serve works until its context ends.
	Serve func(ctx context.Context, config *rest.Config, logger logr.Logger) error
}

// Run is the main function of a server without the process around it: it reads the
// command line by parse, sets up what belongs to the whole process, serves, and returns
// the exit code.
func Run(ctx context.Context, build buildinfo.Build, parse func() (Settings, error), environment Lookup, stdout, stderr io.Writer) int {
	settings, err := parse()
	switch {
	case errors.Is(err, flag.ErrHelp), errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v\n", build.Program, err)
		return ExitUsage
	case settings.Version:
		fmt.Fprintln(stdout, build)
		return 0
	}
	if _, set := environment("GOGC"); !set {
		tuneGC()
	}
	logger := zap.New(zap.UseFlagOptions(settings.Log), zap.WriteTo(stderr), zap.RawZapOpts(uberzap.WrapCore(func(core zapcore.Core) zapcore.Core { return quiet{core} })))
	ctrl.SetLogger(logger)
	// The messages of Kubernetes' libraries.
	klog.SetLogger(logger.WithName("kubernetes"))

	config, err := settings.Config()
	if err != nil {
		logger.Error(err, "finding the API server failed")
		return ExitFailure
	}
	config.UserAgent = build.Program + "/" + build.Version
	logger.Info("starting "+build.Program, "version", build.Version, "build", build.String())
	if err := settings.Serve(ctx, config, logger); err != nil {
		logger.Error(err, build.Program+" failed")
		return ExitFailure
	}
	logger.Info("stopped")
	return 0
}
