// Package load sends requests from many clients at once, and takes the time of each where it matters.
package load

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vmstencil/stencil/test/bench/statistics"
)

// Load is a number of clients, each of which sends its next request when the last one is answered, and a number of requests.
type Load struct {
	Clients int
	// Warmup is the number of unmeasured requests over all clients, Requests that of the measured ones.
	Warmup, Requests int
	// Limit ends either phase when it comes first.
	Limit time.Duration
}

// Sample holds the results of one load.
type Sample struct {
	// Latencies of all requests, sorted.
	Latencies []time.Duration
	elapsed   time.Duration
}

// Send makes the next request of a client.
type Send func(ctx context.Context, client int) error

// Warm makes the requests that are not measured. The first error ends it.
func (l Load) Warm(ctx context.Context, send Send) error {
	_, err := l.phase(ctx, l.Warmup, send)
	return err
}

// Measure makes the measured requests. The first error ends it.
func (l Load) Measure(ctx context.Context, send Send) (Sample, error) {
	return l.phase(ctx, l.Requests, send)
}

// phase makes so many requests over all clients, or as many as the time allows.
func (l Load) phase(ctx context.Context, requests int, send Send) (Sample, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wait      sync.WaitGroup
		taken     atomic.Int64
		latencies = make([][]time.Duration, l.Clients)
		failures  = make([]error, l.Clients)
		begin     = time.Now()
	)
	for client := range l.Clients {
		wait.Go(func() {
			own := make([]time.Duration, 0, min(requests, 4096))
			for taken.Add(1) <= int64(requests) && time.Since(begin) < l.Limit {
				sent := time.Now()
				if err := send(ctx, client); err != nil {
					// The other clients are stopped; the errors of their cancelled requests are ignored.
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
	result := Sample{elapsed: time.Since(begin)}
	for _, own := range latencies {
		result.Latencies = append(result.Latencies, own...)
	}
	slices.Sort(result.Latencies)
	return result, errors.Join(append(failures, context.Cause(ctx))...)
}

// Quantile is the latency, in nanoseconds, that the part q of the requests did not exceed.
func (s Sample) Quantile(q float64) float64 { return float64(statistics.Quantile(s.Latencies, q)) }

// Throughput is the number of requests answered in a second.
func (s Sample) Throughput() float64 { return float64(len(s.Latencies)) / s.elapsed.Seconds() }

// Each calls do with the numbers below count, so many at a time. The first error ends it.
func Each(ctx context.Context, count, clients int, do func(ctx context.Context, number int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for number := range count {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return do(ctx, number)
		})
	}
	return group.Wait()
}
