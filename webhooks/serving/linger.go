package serving

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Linger returns a context that ends delay after ctx has ended. What runs under it goes on serving in the
// meantime; draining is called at the moment when ctx ends. When ctx never ends, neither does the returned
// context, which therefore needs no cancelling.
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
