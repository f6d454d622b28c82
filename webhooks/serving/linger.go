package serving

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Linger returns a context that ends delay after ctx has ended. Components that run under it continue to serve in the
// meantime. draining is called when ctx ends. If ctx never ends, the returned context does not either; it needs no
// cancelling.
func Linger(ctx context.Context, delay time.Duration, clock clock.WithTicker, draining func()) context.Context {
	lingering, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		<-ctx.Done()
		draining()
		if delay > 0 {
			timer := clock.NewTimer(delay)
			defer timer.Stop()
			<-timer.C()
		}
		cancel()
	}()
	return lingering
}
