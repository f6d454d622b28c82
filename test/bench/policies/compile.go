package policies

import (
	"context"
	"runtime"
	"time"

	"github.com/vmstencil/stencil/rego"
)

// compileMany compiles Many policies and returns how long that takes and how much memory they hold.
func compileMany(ctx context.Context, compiler *rego.Compiler, policies library) (time.Duration, int64, error) {
	specs := policies.specs(Many)
	before := heap()
	start := time.Now()
	entries, err := specs.compile(ctx, compiler)
	took := time.Since(start)
	held := heap() - before
	runtime.KeepAlive(entries)
	return took, held, err
}

// heap returns the number of bytes in use after a garbage collection.
func heap() int64 {
	// The second collection frees what the first one finalizes.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
