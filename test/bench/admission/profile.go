package admission

import (
	"context"
	"errors"
	"time"

	"github.com/vmstencil/stencil/test/bench/load"
	"github.com/vmstencil/stencil/test/bench/profiles"
)

// profileTime is how long the manager is profiled.
const profileTime = 10 * time.Second

// profile takes profiles of the manager while clients have it render. It is no part of the measurements.
func (b *bench) profile(ctx context.Context, source *profiles.Source) error {
	done := make(chan error, 1)
	go func() {
		_, err := load.Load{Clients: targetClients, Requests: 1 << 30, Limit: profileTime + time.Second}.Measure(ctx, b.send(withRef))
		done <- err
	}()
	err := source.CPU(ctx, profileTime, "admission-cpu.pprof")
	if err = errors.Join(err, <-done); err != nil {
		return err
	}
	return source.Allocations(ctx, "admission-allocs.pprof")
}
