package defaulting

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/vmstencil/stencil/test/bench/load"
)

// Options are the extent of the measurement.
type Options struct {
	// Root of the checkout.
	Root string
	// Starts is how often the process is started with nothing in its cache.
	Starts int
	// Defines is after how many of libvirt's defines memory is read last.
	Defines int
	// Log receives the defaulter's log, Progress the steps of the benchmark.
	Log      io.Writer
	Progress func(format string, arguments ...any)
}

// Result is what Run has measured.
type Result struct {
	starts []time.Duration
	// idle are requests without any work, of one client.
	idle load.Sample
	// same is one request again and again; noted are requests for one shape with many notes; unknown are those for shapes that were not requested
	// before.
	same, noted, unknown exercise
	// memory is the resident set of both processes after different numbers of defines.
	memory []reading
}

// exercise are the same requests by one client, and by many at once.
type exercise struct{ one, many load.Sample }

// crowd is how many clients many are.
const crowd = 16

type reading struct {
	defines  int
	resident int64
}

// definesPerMiss is how often libvirt defines a VM with fewer than four interfaces and no bridge.
const definesPerMiss = 2

// Run builds the defaulter and measures it.
func Run(ctx context.Context, options Options) (result *Result, err error) {
	parent := "/dev/shm"
	if _, err := os.Stat(parent); err != nil {
		parent = os.TempDir()
	}
	folder, err := os.MkdirTemp(parent, "stencil-bench-defaulting-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	// The worker is another user and runs the binary.
	if err := os.Chmod(folder, 0o755); err != nil {
		return nil, fmt.Errorf("opening the folder: %w", err)
	}
	binary, err := build(ctx, options.Root, folder)
	if err != nil {
		return nil, err
	}
	result = &Result{}
	var p *process
	for number := range options.Starts {
		options.Progress("defaulting: start %d of %d", number+1, options.Starts)
		if p != nil {
			if err := p.stop(); err != nil {
				return nil, err
			}
		}
		if err := os.RemoveAll(filepath.Join(folder, "state")); err != nil {
			return nil, fmt.Errorf("emptying the cache: %w", err)
		}
		var took time.Duration
		if p, took, err = start(ctx, binary, folder, options.Log); err != nil {
			return nil, err
		}
		result.starts = append(result.starts, took)
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	return result, result.measure(ctx, p, options)
}

func (r *Result) measure(ctx context.Context, p *process, options Options) (err error) {
	options.Progress("defaulting: known answers")
	if r.idle, err = measured(ctx, 1, 10_000, func(ctx context.Context, _ int) error { return p.idle(ctx) }); err != nil {
		return err
	}
	same := request(0, "same")
	sameAgain := func(int) []byte { return same }
	if r.same.one, err = requests(ctx, p, 1, 20_000, sameAgain); err != nil {
		return err
	}
	if r.same.many, err = requests(ctx, p, crowd, 60_000, sameAgain); err != nil {
		return err
	}
	noted := func(number int) []byte { return request(0, fmt.Sprintf("note-%d", number)) }
	if r.noted.one, err = requests(ctx, p, 1, 5_000, noted); err != nil {
		return err
	}
	if r.noted.many, err = requests(ctx, p, crowd, 20_000, func(number int) []byte { return noted(10_000 + number) }); err != nil {
		return err
	}

	options.Progress("defaulting: unknown shapes")
	next := 1
	unknown := func(number int) []byte { return request(next+number, "unknown") }
	if r.unknown.one, err = requests(ctx, p, 1, 1000, unknown); err != nil {
		return err
	}
	next += 1000
	if r.unknown.many, err = requests(ctx, p, crowd, 2000, unknown); err != nil {
		return err
	}
	next += 2000
	for next*definesPerMiss < options.Defines && next < shapes {
		batch := min(options.Defines/8/definesPerMiss, shapes-next)
		if err := r.read(p, next); err != nil {
			return err
		}
		options.Progress("defaulting: memory after %d defines is %d MiB", next*definesPerMiss, r.memory[len(r.memory)-1].resident>>20)
		if _, err := requests(ctx, p, 4, batch, unknown); err != nil {
			return err
		}
		next += batch
	}
	return r.read(p, next)
}

func (r *Result) read(p *process, misses int) error {
	resident, err := p.resident()
	if err != nil {
		return err
	}
	r.memory = append(r.memory, reading{misses * definesPerMiss, resident})
	return nil
}

// requests sends as many requests by so many clients at once.
func requests(ctx context.Context, p *process, clients, count int, body func(number int) []byte) (load.Sample, error) {
	bodies := make([][]byte, count)
	for number := range bodies {
		bodies[number] = body(number)
	}
	var next atomic.Int64
	return measured(ctx, clients, count, func(ctx context.Context, _ int) error {
		number := int(next.Add(1)) - 1
		if _, err := p.client.Raw(ctx, bodies[number]); err != nil {
			return fmt.Errorf("request %d: %w", number, err)
		}
		return nil
	})
}

// limit bounds a measurement.
const limit = time.Hour

func measured(ctx context.Context, clients, count int, send load.Send) (load.Sample, error) {
	return load.Load{Clients: clients, Requests: count, Limit: limit}.Measure(ctx, send)
}
