package readiness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/vmstencil/stencil/test/bench/machine"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/manager"
	"github.com/vmstencil/stencil/test/metrics"
)

// Options are the sizes and the extent of the measurement.
type Options struct {
	// Definitions is the folder with the CRDs of Stencil.
	Definitions string
	// Templates depend on DataSources, each on one of them, equally many on each.
	Templates, DataSources int
	// Rounds is how often a DataSource flips; the result is the slowest. At least 1.
	Rounds int
	// Steady is how long the manager is observed while no change has an effect.
	Steady time.Duration
	// Log receives the cluster's log, Progress the steps of the benchmark.
	Log      io.Writer
	Progress func(format string, arguments ...any)
}

// Result is what Run has measured.
type Result struct {
	options Options
	// first is the time from the start of the manager until every template has its first status.
	first time.Duration
	// reconciles is how many there were in the steady time, touched how many claims were touched in it.
	reconciles, touched int
	memory              machine.Memory
	// flips are the times until all templates of a DataSource were written, work the reconciles that it took at most.
	flips []time.Duration
	work  int
}

// pollInterval is how often the manager's metrics are read.
const pollInterval = 20 * time.Millisecond

// limit is how long a wait may take before it is given up.
const limit = 30 * time.Minute

// Run measures.
func Run(ctx context.Context, options Options) (result *Result, err error) {
	result = &Result{options: options}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	plane, err := controlplane.Start(ctx, controlplane.Options{Log: options.Log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	options.Progress("readiness: creating %d templates and %d DataSources", options.Templates, options.DataSources)
	cluster, process, err := prepare(ctx, plane, options)
	if err != nil {
		return nil, err
	}
	options.Progress("readiness: first look at all templates")
	began := time.Now()
	running, err := manager.Start(ctx, process)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, running.Stop()) }()
	if err := await(ctx, running, pollInterval, func(c counters) bool {
		return c.value(`stencil_template_readiness{status="True"}`) == options.Templates && c.value(writes) >= options.Templates
	}); err != nil {
		return nil, err
	}
	result.first = time.Since(began)
	options.Progress("readiness: %s in which nothing means anything", options.Steady)
	if err := result.steady(ctx, cluster, running); err != nil {
		return nil, err
	}
	if result.memory, err = machine.MemoryOf(running.PID()); err != nil {
		return nil, err
	}
	for round := range options.Rounds {
		options.Progress("readiness: flip %d of %d", round+1, options.Rounds)
		if err := result.flip(ctx, cluster, running, round); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// steady touches claims, ten in a second, and counts the resulting reconciles.
func (r *Result) steady(ctx context.Context, cluster *cluster, running *manager.Process) error {
	before, err := read(ctx, running)
	if err != nil {
		return err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < r.options.Steady; r.touched++ {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%d"}}}`, r.touched)
		if err := cluster.patch(ctx, claimPath(r.touched%r.options.DataSources), patch); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	after, err := read(ctx, running)
	r.reconciles = after.reconciles() - before.reconciles()
	return err
}

// flip points a DataSource at a claim that does not exist, and measures the time until all its templates report it.
func (r *Result) flip(ctx context.Context, cluster *cluster, running *manager.Process, number int) error {
	before, err := read(ctx, running)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := cluster.patch(ctx, dataSourcePath(number), []byte(`{"spec":{"source":{"pvc":{"name":"nowhere"}}}}`)); err != nil {
		return err
	}
	dependents := r.options.Templates / r.options.DataSources
	if err := await(ctx, running, pollInterval, func(c counters) bool { return c.value(writes) >= before.value(writes)+dependents }); err != nil {
		return err
	}
	r.flips = append(r.flips, time.Since(began))
	after, err := read(ctx, running)
	r.work = max(r.work, after.reconciles()-before.reconciles())
	return err
}

// writes counts statuses that were written.
const writes = "stencil_template_readiness_writes_total"

// counters is the response of the manager's metrics endpoint.
type counters string

func read(ctx context.Context, running *manager.Process) (counters, error) {
	text, err := running.Metrics(ctx)
	return counters(text), err
}

// value returns the value of a series, 0 when it does not exist.
func (c counters) value(series string) int { return int(metrics.Value(string(c), series)) }

// reconciles counts those of the controller of readiness, with any result.
func (c counters) reconciles() int {
	total := 0
	for _, outcome := range []string{"success", "error", "requeue", "requeue_after"} {
		total += c.value(`controller_runtime_reconcile_total{controller="template-readiness",result="` + outcome + `"}`)
	}
	return total
}

func await(ctx context.Context, running *manager.Process, interval time.Duration, done func(counters) bool) error {
	err := running.Poll(ctx, interval, limit, func() (bool, error) {
		now, err := read(ctx, running)
		return err == nil && done(now), err
	})
	if err != nil {
		return fmt.Errorf("waiting for templates: %w\n%s", err, running.Logs())
	}
	return nil
}
