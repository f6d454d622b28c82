package main

import (
	"context"
	"io"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/vmstencil/stencil/internal/buildinfo"
	program "github.com/vmstencil/stencil/internal/server"
)

// version is set by the linker in release builds: -ldflags "-X main.version=v1.2.3".
var version string

func currentBuild() buildinfo.Build { return buildinfo.Current("stencil-apiserver", version) }

func main() {
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
				return serve(ctx, o, config, logger)
			},
		}, nil
	}, environment, stdout, stderr)
}

// restConfig returns the configuration of the API server client. It has no rate limit: the
// limits of the API server and of incoming requests suffice.
func (o *options) restConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}
