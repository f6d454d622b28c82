package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/vmstencil/stencil/defaulting/engine"
	"github.com/vmstencil/stencil/defaulting/identity"
	"github.com/vmstencil/stencil/defaulting/service"
	"github.com/vmstencil/stencil/defaulting/supervisor"
)

// serve runs the supervisor and the service until the context ends.
func serve(ctx context.Context, o options, logger logr.Logger) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the own binary: %w", err)
	}
	workers := supervisor.New(supervisor.Options{
		Command: supervisor.Command{
			Path: self,
			Args: []string{workerCommand, "--root", o.root, "--user", strconv.Itoa(o.user)},
			// The worker does not inherit the environment of the container.
			Env: []string{"HOME=" + o.root, "XDG_CACHE_HOME=" + o.root, "XDG_RUNTIME_DIR=" + o.root, "PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
		},
		Log:      logger.WithName("supervisor"),
		Watchdog: o.watchdog,
		Queue:    o.queue,
		Prepare:  func() error { return os.MkdirAll(o.root, 0o700) },
		Reap:     true,
	})
	answers := engine.New(engine.Options{Libvirt: workers, Identities: identity.Random{}, Version: buildVersion(), KubeVirt: o.kubevirt, NoPins: !o.pin})
	registry := prometheus.NewRegistry()
	registerMetrics(registry, workers, answers)
	handler := service.New(service.Options{Engine: answers, Surveyor: workers, Registry: registry, Log: logger.WithName("service")})

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return workers.Run(ctx) })
	group.Go(func() error { return service.Serve(ctx, o.socket, handler) })
	return group.Wait()
}

// version is set by the linker in release builds: -ldflags "-X main.version=v1.2.3".
var version string

// buildVersion returns the version of the release, else the commit, else the version of the
// module.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	if info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
