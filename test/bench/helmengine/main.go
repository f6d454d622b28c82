// Command helmengine measures Helm's own engine on a chart that is the golden Fedora template of docs/examples in Helm's terms: the same object, the
// same parameters, the same ones generated.
//
// It is a module of its own, so that Helm's dependencies do not affect those of other modules. The benchmarks run it once per round, in turn with
// Stencil's engine, and read one JSON document from its standard output.
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
	duration := flag.String("time", "1s", "time of each measurement")
	name := flag.String("name", "", "value of name for the document that is printed, not for the measurement")
	password := flag.String("password", "", "value of cloudUserPassword for the same document")
	flag.Parse()
	if err := run(*duration, *name, *password); err != nil {
		fmt.Fprintln(os.Stderr, "helmengine:", err)
		os.Exit(1)
	}
}

// answer is what the benchmarks read.
type answer struct {
	// Document is the rendered virtual machine as JSON, for the proof that both sides render the same.
	Document json.RawMessage `json:"document"`
	// Text is rendering to YAML, as Helm's engine leaves it.
	Text measurement `json:"text"`
	// JSON is rendering and the conversion to JSON, which is what an API server can be sent.
	JSON measurement `json:"json"`
}

type measurement struct {
	Nanoseconds float64 `json:"nanoseconds"`
	Bytes       int64   `json:"bytes"`
	Allocations int64   `json:"allocations"`
}

func run(duration, name, password string) error {
	if err := flag.Set("test.benchtime", duration); err != nil {
		return fmt.Errorf("setting the time of a measurement: %w", err)
	}
	r, err := newRenderer()
	if err != nil {
		return err
	}
	var out answer
	if out.Document, err = r.json(map[string]any{"name": name, "cloudUserPassword": password}); err != nil {
		return err
	}
	// Without values every instance gets a generated name and password, as each VM does.
	if out.Text, err = measure(func() error { _, err := r.text(nil); return err }); err != nil {
		return err
	}
	if out.JSON, err = measure(func() error { _, err := r.json(nil); return err }); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

func measure(work func() error) (measurement, error) {
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
