package cache

import (
	"context"
	"errors"

	"github.com/vmstencil/stencil/test/bench/profiles"
	"github.com/vmstencil/stencil/test/manager"
)

// profile starts the manager once more and takes profiles of its memory when it is ready.
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
	return errors.Join(
		source.Allocations(ctx, "cache-allocs.pprof"),
		source.Heap(ctx, "cache-heap.pprof"),
	)
}
