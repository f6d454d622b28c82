// Package buildinfo describes the source from which a binary was built.
package buildinfo

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// Build is the source from which this binary was built.
type Build struct {
	// Version of a release, or what the go command derives from the checkout.
	Version string
	// Program is the name of the binary.
	Program  string
	revision string
	modified bool
}

// Current reads what the linker and the go command stored in the binary of a program. version is set by the linker in release builds, empty in
// others.
func Current(program, version string) Build {
	b := Build{Version: version, Program: program, revision: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
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
func (b Build) String() string {
	revision := b.revision
	if b.modified {
		revision += ", modified"
	}
	return fmt.Sprintf("%s %s (revision %s, %s)", b.Program, b.Version, revision, runtime.Version())
}

// Register registers a metric with the build in its labels.
func (b Build) Register(registerer prometheus.Registerer) error {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "stencil_build_info",
		Help: "Always 1; the labels describe the build of the process.",
	}, []string{"version", "revision", "go_version"})
	gauge.WithLabelValues(b.Version, b.revision, runtime.Version()).Set(1)
	if err := registerer.Register(gauge); err != nil {
		return fmt.Errorf("registering the build information: %w", err)
	}
	return nil
}
