package admission

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/vmstencil/stencil/test/bench/profiles"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/platform"
)

// Options are the extent of the measurement.
type Options struct {
	// Rounds of each comparison; the result is their median. At least 1.
	Rounds int
	// Brief measures only what the ratios to the floor require.
	Brief bool
	// Profile is a folder for Go profiles of the manager under load, empty for none.
	Profile string
	// Log receives the cluster's log, Progress the steps of the benchmark.
	Log      io.Writer
	Progress func(format string, arguments ...any)
}

// targetClients is the number of concurrent clients in the measurements with targets.
const targetClients = 8

// Result is what Run has measured.
type Result struct {
	// single is of one client, free of many without an approval, governed of many with an approval and a policy.
	single, free, governed grid
}

// Run starts the cluster and measures.
func Run(ctx context.Context, options Options) (*Result, error) {
	// Short rounds: less can change between two measurements.
	single := plan{setups: []setup{without, control, noRef, rendered, floorOne}, clients: []int{1}, rounds: options.Rounds, requests: 250, limit: 2 * time.Second}
	many := plan{setups: []setup{without, bareFloor, floorOne, rendered}, clients: []int{targetClients}, rounds: options.Rounds, requests: 1000, limit: 2 * time.Second}
	if options.Brief {
		single.rounds, many.setups = 0, []setup{floorOne, rendered}
	}
	source, arguments, err := profiles.Requested(options.Profile)
	if err != nil {
		return nil, err
	}
	result := &Result{}
	err = on(ctx, platform.Options{
		Log: options.Log, ManagerArgs: arguments,
		// A policy is not evaluated without the instance type and the preference of golden/fedora.
		BeforeInstall: func(ctx context.Context, plane *controlplane.Plane) error { return plane.InstallCatalogue(ctx) },
	}, func(b *bench) error {
		patches, err := b.patches(ctx)
		if err != nil {
			return err
		}
		if err := b.startFloor(ctx, patches); err != nil {
			return err
		}
		if result.single, err = b.rounds(ctx, single, options.Progress); err != nil {
			return err
		}
		if result.free, err = b.rounds(ctx, many, options.Progress); err != nil {
			return err
		}
		if err := b.profile(ctx, source, rendered, "admission-rendered"); err != nil {
			return err
		}
		if err := b.govern(ctx); err != nil {
			return err
		}
		many.setups = []setup{floorTwo, evaluated}
		if result.governed, err = b.rounds(ctx, many, options.Progress); err != nil {
			return err
		}
		return b.profile(ctx, source, evaluated, "admission-judged")
	})
	return result, err
}

// on runs the work on a cluster of its own.
func on(ctx context.Context, options platform.Options, work func(*bench) error) (err error) {
	// The cluster's own context: Ctrl-C ends the measurement, and then the cluster is stopped in order.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stencil, err := platform.Start(running, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stencil.Stop()) }()
	// The benchmark deletes and creates objects that a manager otherwise restores. A manager that never restored any omits bindings of policies.
	if err := stencil.RestartManager("--protected-objects="); err != nil {
		return err
	}
	b, err := prepare(ctx, stencil, targetClients)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	return work(b)
}
