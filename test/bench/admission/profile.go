package admission

import (
	"context"
	"errors"
	"time"

	"github.com/vmstencil/stencil/test/bench/load"
	"github.com/vmstencil/stencil/test/bench/profiles"
)

// profileTime is how long the manager is profiled, for processor time and for allocations each.
const profileTime = 10 * time.Second

// profile takes profiles of the manager while clients create VMs, unless there is no source. It is no part of the measurements.
func (b *bench) profile(ctx context.Context, source *profiles.Source, s setup, name string) error {
	if source == nil {
		return nil
	}
	if err := b.know(ctx, s.parts); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		_, err := load.Load{Clients: targetClients, Requests: 1 << 30, Limit: 2*profileTime + time.Second}.Measure(ctx, b.send(s))
		done <- err
	}()
	err := source.CPU(ctx, profileTime, name+"-cpu.pprof")
	if err == nil {
		err = source.AllocationsDuring(ctx, profileTime, name+"-allocs.pprof")
	}
	return errors.Join(err, <-done)
}
