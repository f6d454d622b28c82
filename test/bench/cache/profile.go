package cache

import (
	"context"
	"errors"
	"time"

	"github.com/vmstencil/stencil/test/bench/profiles"
	"github.com/vmstencil/stencil/test/manager"
)

// profile starts the manager once more and takes profiles of its memory when it is ready, and of what it holds a while later.
func profile(ctx context.Context, options manager.Options, wanted Options) (err error) {
	if wanted.Profile == "" {
		return nil
	}
	wanted.Progress("cache: profiling")
	source, err := profiles.New(wanted.Profile)
	if err != nil {
		return err
	}
	options.Args = append(options.Args, source.Argument())
	process, err := manager.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.Stop()) }()
	if err := errors.Join(source.Allocations(ctx, "cache-allocs.pprof"), source.Heap(ctx, "cache-heap.pprof")); err != nil {
		return err
	}
	ready := time.Now()
	if err := process.Poll(ctx, observationStep, 2*observation, func() (bool, error) { return time.Since(ready) >= observation, nil }); err != nil {
		return err
	}
	return source.Heap(ctx, "cache-heap-later.pprof")
}
