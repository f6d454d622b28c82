package measurement

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/bench/statistics"
)

// Cost is what one repetition costs. The JSON is that of the commands for other engines.
type Cost struct {
	Nanoseconds float64 `json:"nanoseconds"`
	Bytes       int64   `json:"bytes"`
	Allocations int64   `json:"allocations"`
}

// Of repeats the work for about the given time.
func Of(duration time.Duration, work func() error) (Cost, error) {
	// testing.Benchmark reads its time from a flag of `go test`, which testing.Init registers in a program.
	if flag.Lookup("test.benchtime") == nil {
		testing.Init()
	}
	if err := flag.Set("test.benchtime", duration.String()); err != nil {
		return Cost{}, fmt.Errorf("setting the time of a measurement: %w", err)
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
		return Cost{}, failed
	}
	return Cost{
		Nanoseconds: float64(result.T.Nanoseconds()) / float64(result.N),
		Bytes:       result.AllocedBytesPerOp(),
		Allocations: result.AllocsPerOp(),
	}, nil
}

// Series is one cost for each round.
type Series []Cost

// Time is the median time of one repetition, in nanoseconds.
func (s Series) Time() float64 {
	return s.median(func(c Cost) float64 { return c.Nanoseconds })
}

// Memory is the median of the bytes that one repetition allocates.
func (s Series) Memory() float64 {
	return s.median(func(c Cost) float64 { return float64(c.Bytes) })
}

// Allocations is the median of their number.
func (s Series) Allocations() float64 {
	return s.median(func(c Cost) float64 { return float64(c.Allocations) })
}

func (s Series) median(of func(Cost) float64) float64 {
	values := make([]float64, len(s))
	for i, c := range s {
		values[i] = of(c)
	}
	return statistics.Median(values)
}
