package defaulting

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vmstencil/stencil/test/bench/statistics"
)

// Options are the extent of the measurement.
type Options struct {
	// Root is that of the checkout.
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
	// idle are the times of a request without any work.
	idle times
	// same are answers to one request again and again; noted are those to requests for one shape with many notes; unknown are those for shapes that
	// were not requested before.
	same, noted, unknown times
	// Answers in a second, for 16 clients.
	sameRate, notedRate, unknownRate float64
	// memory is the resident set of both processes after different numbers of defines.
	memory []reading
}

// times are how long answers took, sorted.
type times []time.Duration

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
	if r.idle, err = timed(10_000, func(int) error { return p.idle(ctx) }); err != nil {
		return err
	}
	same := request(0, "same")
	sameAgain := func(int) []byte { return same }
	if r.same, err = one(ctx, p, 20_000, sameAgain); err != nil {
		return err
	}
	if r.sameRate, err = many(ctx, p, 16, 60_000, sameAgain); err != nil {
		return err
	}
	noted := func(number int) []byte { return request(0, fmt.Sprintf("note-%d", number)) }
	if r.noted, err = one(ctx, p, 5_000, noted); err != nil {
		return err
	}
	if r.notedRate, err = many(ctx, p, 16, 20_000, func(number int) []byte { return noted(10_000 + number) }); err != nil {
		return err
	}

	options.Progress("defaulting: unknown shapes")
	next := 1
	unknown := func(number int) []byte { return request(next+number, "unknown") }
	if r.unknown, err = one(ctx, p, 1000, unknown); err != nil {
		return err
	}
	next += 1000
	if r.unknownRate, err = many(ctx, p, 16, 2000, unknown); err != nil {
		return err
	}
	next += 2000
	for next*definesPerMiss < options.Defines && next < shapes {
		batch := min(options.Defines/8/definesPerMiss, shapes-next)
		if err := r.read(p, next); err != nil {
			return err
		}
		options.Progress("defaulting: memory after %d defines is %d MiB", next*definesPerMiss, r.memory[len(r.memory)-1].resident>>20)
		if _, err := many(ctx, p, 4, batch, unknown); err != nil {
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

// one sends one request after another.
func one(ctx context.Context, p *process, count int, body func(number int) []byte) (times, error) {
	bodies := make([][]byte, count)
	for number := range bodies {
		bodies[number] = body(number)
	}
	return timed(count, func(number int) error {
		_, err := p.client.Raw(ctx, bodies[number])
		return err
	})
}

// timed does something again and again.
func timed(count int, do func(number int) error) (times, error) {
	taken := make(times, count)
	for number := range count {
		begin := time.Now()
		if err := do(number); err != nil {
			return nil, fmt.Errorf("request %d: %w", number, err)
		}
		taken[number] = time.Since(begin)
	}
	slices.Sort(taken)
	return taken, nil
}

// many sends requests with several clients at once, and returns answers in a second.
func many(ctx context.Context, p *process, clients, count int, body func(number int) []byte) (float64, error) {
	bodies := make([][]byte, count)
	for number := range bodies {
		bodies[number] = body(number)
	}
	var (
		next     atomic.Int64
		requests sync.WaitGroup
		failures = make(chan error, clients)
	)
	begin := time.Now()
	for range clients {
		requests.Go(func() {
			for {
				number := int(next.Add(1)) - 1
				if number >= count {
					return
				}
				if _, err := p.client.Raw(ctx, bodies[number]); err != nil {
					failures <- fmt.Errorf("request %d: %w", number, err)
					return
				}
			}
		})
	}
	requests.Wait()
	took := time.Since(begin)
	close(failures)
	return float64(count) / took.Seconds(), <-failures
}

func (t times) quantile(q float64) time.Duration { return statistics.Quantile(t, q) }
