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

// profile takes profiles of the manager while clients create machines. It is no part of the measurements.
func (b *bench) profile(ctx context.Context, source *profiles.Source, s setup, name string) error {
	done := make(chan error, 1)
	go func() {
		_, err := load.Load{Clients: targetClients, Requests: 1 << 30, Limit: profileTime + time.Second}.Measure(ctx, b.send(s))
		done <- err
	}()
	err := source.CPU(ctx, profileTime, name+"-cpu.pprof")
	if err = errors.Join(err, <-done); err != nil {
		return err
	}
	return source.Allocations(ctx, name+"-allocs.pprof")
}
