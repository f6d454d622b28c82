package server

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// gcPercent is how much a large heap may grow before it is collected, in percent of the live heap. It is less than half of Go's
	// default, because caches are most of the memory in a large cluster.
	gcPercent = 40
	// leastGarbage is how much a heap may grow to usualHeap, in bytes. Otherwise a heap of 15 MiB is collected after a hundred
	// requests, which took up to a quarter of the processor time.
	leastGarbage = 32 << 20
	// usualHeap is the size up to which a heap may grow by leastGarbage, in bytes.
	usualHeap = 64 << 20
	// leastLive limits the percentage of a program that has just started, in bytes.
	leastLive = 4 << 20
)

// percentFor returns the percentage for debug.SetGCPercent for a live heap of so many bytes.
func percentFor(live uint64) int {
	live = max(live, leastLive)
	garbage := min(leastGarbage, usualHeap-min(live, usualHeap))
	return max(gcPercent, int(garbage*100/live))
}

// tuneGC sets the percentage of the garbage collector now and after each collection, until the process ends.
func tuneGC() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	current := 0
	onEachGC(func() {
		metrics.Read(sample)
		// Setting it stops the world for a moment.
		if wanted := percentFor(sample[0].Value.Uint64()); wanted*10 < current*9 || wanted*9 > current*10 {
			debug.SetGCPercent(wanted)
			current = wanted
		}
	})
}

// onEachGC calls do now and after each collection, one call at a time.
func onEachGC(do func()) {
	do()
	// An unreachable object is finalized by the next collection. It must hold a pointer, or it shares a block with other objects.
	runtime.SetFinalizer(&struct{ self *int }{}, func(any) { onEachGC(do) })
}
