package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// version is set by the linker in release builds: -ldflags "-X main.version=v1.2.3".
var version string

// build says what this binary was built from.
type build struct {
	version  string
	revision string
	modified bool
}

// currentBuild reads what the linker and the go command left in the binary.
func currentBuild() build {
	b := build{version: version, revision: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.version == "" {
		b.version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.revision = setting.Value
		case "vcs.modified":
			b.modified = setting.Value == "true"
		}
	}
	return b
}

// String implements fmt.Stringer, for --version.
func (b build) String() string {
	revision := b.revision
	if b.modified {
		revision += ", modified"
	}
	return fmt.Sprintf("stencil-manager %s (revision %s, %s)", b.version, revision, runtime.Version())
}

// register registers a metric whose labels tell what runs.
func (b build) register(registerer prometheus.Registerer) error {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "stencil_build_info",
		Help: "Always 1; the labels tell what the process was built from.",
	}, []string{"version", "revision", "go_version"})
	gauge.WithLabelValues(b.version, b.revision, runtime.Version()).Set(1)
	if err := registerer.Register(gauge); err != nil {
		return fmt.Errorf("registering the build information: %w", err)
	}
	return nil
}
