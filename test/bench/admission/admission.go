package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/vmstencil/stencil/test/bench/profiles"
	"github.com/vmstencil/stencil/test/platform"
)

// Options say how much is measured.
type Options struct {
	// Rounds of the main comparison; the result is their median. At least 1.
	Rounds int
	// Profile is a folder for Go profiles of the manager under load, empty for none.
	Profile string
	// Log is told what the cluster does, Progress what the benchmark does.
	Log      io.Writer
	Progress func(format string, arguments ...any)
}

// clientNumbers are how many clients create VMs at a time.
var clientNumbers = []int{1, 8, 32}

// Result is what Run has measured.
type Result struct {
	// base is all set-ups on a cluster without KubeVirt's webhooks, unjudged those that ought to be equal in many short rounds,
	// kubevirt all set-ups with KubeVirt's webhooks beside Stencil's, governed what the webhooks that judge add where an approval asks.
	base, unjudged, kubevirt, governed grid
}

// Run starts the clusters and measures.
func Run(ctx context.Context, options Options) (*Result, error) {
	result := &Result{}
	everything := plan{
		setups: everySetup, clients: clientNumbers,
		rounds: options.Rounds, requests: 2000, limit: 4 * time.Second,
	}
	// Short rounds, because the shorter the time between two measurements the less can happen between them.
	apart := plan{setups: []setup{without, noRef, control}, clients: []int{1}, rounds: 4 * options.Rounds, requests: 300, limit: 2 * time.Second}

	judging := plan{setups: []setup{unjudged, judged}, clients: []int{1, targetClients}, rounds: options.Rounds, requests: 2000, limit: 4 * time.Second}

	source, arguments, err := options.profiles()
	if err != nil {
		return nil, err
	}
	err = on(ctx, platform.Options{Log: options.Log, ManagerArgs: arguments}, func(b *bench) (err error) {
		if result.base, err = b.rounds(ctx, everything, options.Progress); err != nil {
			return err
		}
		if result.unjudged, err = b.rounds(ctx, apart, options.Progress); err != nil {
			return err
		}
		if err := b.govern(ctx, true); err != nil {
			return err
		}
		if result.governed, err = b.rounds(ctx, judging, options.Progress); err != nil {
			return err
		}
		if err := b.govern(ctx, false); err != nil || source == nil {
			return err
		}
		options.Progress("admission: profiling")
		return b.profile(ctx, source, withRef, "admission")
	})
	if err != nil {
		return nil, err
	}
	everything.clients = []int{targetClients}
	err = on(ctx, platform.Options{KubeVirt: true, Log: options.Log}, func(b *bench) (err error) {
		if err := unlimit(ctx, b.stencil); err != nil {
			return err
		}
		result.kubevirt, err = b.rounds(ctx, everything, options.Progress)
		return err
	})
	return result, err
}

// profiles are where the profiles come from, nil where none are wanted, and what the manager is told for them.
func (o Options) profiles() (*profiles.Source, []string, error) {
	if o.Profile == "" {
		return nil, nil, nil
	}
	source, err := profiles.New(o.Profile)
	if err != nil {
		return nil, nil, err
	}
	return source, []string{source.Argument()}, nil
}

// on runs the work on a cluster of its own.
func on(ctx context.Context, options platform.Options, work func(*bench) error) (err error) {
	// The cluster's own context: Ctrl-C ends the measurement, and then the cluster is stopped in order.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	// What comes and goes here is what a manager restores otherwise.
	options.ManagerArgs = append(options.ManagerArgs, "--protected-objects=")
	stencil, err := platform.Start(running, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stencil.Stop()) }()
	b, err := prepare(ctx, stencil, slices.Max(clientNumbers))
	if err != nil {
		return err
	}
	defer b.idler.close()
	return work(b)
}

// unlimit lifts the limit that virt-api sets itself: 200 requests to the API server in a second, three for each VM from an instance
// type. With it, every set-up creates 67 VMs in a second and differs from the others in nothing.
func unlimit(ctx context.Context, stencil *platform.Platform) error {
	const (
		component = `{"restClient":{"rateLimiter":{"tokenBucketRateLimiter":{"qps":10000,"burst":10000}}}}`
		patch     = `{"spec":{"configuration":{"apiConfiguration":` + component + `,"webhookConfiguration":` + component + `}}}`
	)
	result, err := stencil.Plane.Kubectl(ctx, nil, "", "patch", "kubevirt", "kubevirt", "--namespace=kubevirt", "--type=merge", "--patch="+patch)
	if err != nil {
		return err
	}
	if result.Code != 0 {
		return fmt.Errorf("lifting the limit of virt-api: %s", result.Stderr)
	}
	return nil
}
