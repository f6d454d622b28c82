package engine

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/bench/statistics"
)

// measurement is what one operation costs. The JSON is that of the helmengine command.
type measurement struct {
	Nanoseconds float64 `json:"nanoseconds"`
	Bytes       int64   `json:"bytes"`
	Allocations int64   `json:"allocations"`
}

// measure repeats the work for about the given time.
func measure(duration time.Duration, work func() error) (measurement, error) {
	// testing.Benchmark takes its time from the flag of `go test`, which a program has only after this.
	if flag.Lookup("test.benchtime") == nil {
		testing.Init()
	}
	if err := flag.Set("test.benchtime", duration.String()); err != nil {
		return measurement{}, fmt.Errorf("setting the time of a measurement: %w", err)
	}
	var failed error
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if failed = work(); failed != nil {
				b.FailNow()
			}
		}
	})
	if failed != nil {
		return measurement{}, failed
	}
	return measurement{
		Nanoseconds: float64(result.T.Nanoseconds()) / float64(result.N),
		Bytes:       result.AllocedBytesPerOp(),
		Allocations: result.AllocsPerOp(),
	}, nil
}

// series is one measurement for each round.
type series []measurement

func (s series) median(of func(measurement) float64) float64 {
	values := make([]float64, len(s))
	for i, m := range s {
		values[i] = of(m)
	}
	return statistics.Median(values)
}

func nanoseconds(m measurement) float64 { return m.Nanoseconds }
func memory(m measurement) float64      { return float64(m.Bytes) }
func allocations(m measurement) float64 { return float64(m.Allocations) }
