package main

import (
	"context"
	"io"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/vmstencil/stencil/cache/policies/child"
	"github.com/vmstencil/stencil/internal/buildinfo"
	program "github.com/vmstencil/stencil/internal/server"
)

// version is set by the linker in release builds: -ldflags "-X main.version=v1.2.3".
var version string

func currentBuild() buildinfo.Build { return buildinfo.Current("stencil-manager", version) }

func main() {
	if len(os.Args) == 2 && os.Args[1] == child.Argument {
		os.Exit(child.Main(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(run(ctrl.SetupSignalHandler(), os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// run is main with the process state as parameters.
func run(ctx context.Context, arguments []string, environment program.Lookup, stdout, stderr io.Writer) int {
	return program.Run(ctx, currentBuild(), func() (program.Settings, error) {
		o, err := parse(arguments, environment, stderr)
		if err != nil {
			return program.Settings{}, err
		}
		return program.Settings{
			Version: o.version,
			Log:     &o.zap,
			Config:  o.restConfig,
			Serve: func(ctx context.Context, config *rest.Config, logger logr.Logger) error {
				if o.uninstalled {
					return removeLeftovers(ctx, o, config, logger)
				}
				if o.uninstall {
					return prepareUninstallation(ctx, o, config, logger)
				}
				return serve(ctx, o, config, logger)
			},
		}, nil
	}, environment, stdout, stderr)
}

// restConfig returns the configuration of the API server client.
func (o *options) restConfig() (*rest.Config, error) {
	found, err := config.GetConfig()
	if err == nil && o.kubeAPIQPS >= 0 {
		found.QPS, found.Burst = float32(o.kubeAPIQPS), o.kubeAPIBurst
	}
	return found, err
}
