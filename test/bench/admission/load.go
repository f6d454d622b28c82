package admission

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vmstencil/stencil/test/bench/statistics"
)

// load says how a set-up is exercised: by so many clients, each of which sends its next request when the last one is answered.
type load struct {
	clients int
	// warmup is the number of requests, over all clients, that are not measured, requests that of those that are.
	warmup, requests int
	// limit ends either phase when it comes first.
	limit time.Duration
}

// sample is what one load came to.
type sample struct {
	// latencies of all requests, sorted.
	latencies []time.Duration
	elapsed   time.Duration
}

// send makes the next request of a client.
type send func(ctx context.Context, client int) error

// warm makes the requests that are not measured. The first error ends it.
func (l load) warm(ctx context.Context, send send) error {
	_, err := l.phase(ctx, l.warmup, send)
	return err
}

// measure makes the requests that are. The first error ends it.
func (l load) measure(ctx context.Context, send send) (sample, error) {
	return l.phase(ctx, l.requests, send)
}

// phase makes so many requests over all clients, or as many as the time allows.
func (l load) phase(ctx context.Context, requests int, send send) (sample, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wait      sync.WaitGroup
		taken     atomic.Int64
		latencies = make([][]time.Duration, l.clients)
		failures  = make([]error, l.clients)
		begin     = time.Now()
	)
	for client := range l.clients {
		wait.Go(func() {
			own := make([]time.Duration, 0, min(requests, 4096))
			for taken.Add(1) <= int64(requests) && time.Since(begin) < l.limit {
				sent := time.Now()
				if err := send(ctx, client); err != nil {
					// The others need not go on, and what ending them does to their requests is no news.
					if !errors.Is(err, context.Canceled) {
						failures[client] = err
					}
					cancel()
					return
				}
				own = append(own, time.Since(sent))
			}
			latencies[client] = own
		})
	}
	wait.Wait()
	result := sample{elapsed: time.Since(begin)}
	for _, own := range latencies {
		result.latencies = append(result.latencies, own...)
	}
	slices.Sort(result.latencies)
	return result, errors.Join(append(failures, context.Cause(ctx))...)
}

func (s sample) quantile(q float64) float64 { return float64(statistics.Quantile(s.latencies, q)) }

// throughput is the number of requests answered in a second.
func (s sample) throughput() float64 { return float64(len(s.latencies)) / s.elapsed.Seconds() }
