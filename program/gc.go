package program

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// gcPercent is how much a large heap may grow before it is collected, in percent of what is alive in it. It is half of Go's
	// default: what a server keeps of a large cluster is most of its memory.
	gcPercent = 50
	// leastGarbage is how much a heap may grow in any case, in bytes. A heap of 15 MiB would be collected after a hundred requests
	// otherwise, and a seventh of the processor time was that.
	leastGarbage = 32 << 20
	// leastLive keeps the percentage within reason for a program that has only just started, in bytes.
	leastLive = 4 << 20
)

// percentFor is the percentage, as debug.SetGCPercent takes it, for a heap in which so many bytes are alive.
func percentFor(live uint64) int {
	return max(gcPercent, int(leastGarbage*100/max(live, leastLive)))
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
	// An object that nobody refers to is finalized by the next collection. It must hold a pointer, or it shares a block with others.
	runtime.SetFinalizer(&struct{ self *int }{}, func(any) { onEachGC(do) })
}
