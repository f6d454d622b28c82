// Command kyvernoengine measures Kyverno's own engine, as its command line and its admission controller call it, on a VirtualMachine that satisfies all
// policies. They are compiled before.
//
// It is a module of its own, so that Kyverno's dependencies do not affect those of other modules. The benchmarks run it once per round and number of
// policies, in turn with Stencil's engine, and read one JSON document from its standard output.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"
)

func main() {
	testing.Init()
	duration := flag.String("time", "1s", "time of the measurement")
	machine := flag.String("machine", "", "file with the VirtualMachine, as YAML")
	number := flag.Int("policies", 1, "number of policies")
	flag.Parse()
	if err := run(*duration, *machine, *number); err != nil {
		fmt.Fprintln(os.Stderr, "kyvernoengine:", err)
		os.Exit(1)
	}
}

// measurement is what the benchmarks read.
type measurement struct {
	Nanoseconds float64 `json:"nanoseconds"`
	Bytes       int64   `json:"bytes"`
	Allocations int64   `json:"allocations"`
}

func run(duration, machine string, number int) error {
	if err := flag.Set("test.benchtime", duration); err != nil {
		return fmt.Errorf("setting the time of the measurement: %w", err)
	}
	r, err := newReviewer(machine, number)
	if err != nil {
		return err
	}
	if err := r.review(); err != nil {
		return err
	}
	var failed error
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if failed = r.review(); failed != nil {
				b.FailNow()
			}
		}
	})
	if failed != nil {
		return failed
	}
	return json.NewEncoder(os.Stdout).Encode(measurement{
		Nanoseconds: float64(result.T.Nanoseconds()) / float64(result.N),
		Bytes:       result.AllocedBytesPerOp(),
		Allocations: result.AllocsPerOp(),
	})
}
