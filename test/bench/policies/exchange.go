package policies

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/test/bench/statistics"
)

const (
	// perSecond is how many requests come in.
	perSecond = 500
	// loaded is how many policies each is subject to.
	loaded = 20
	// exchangeEvery is how often one of them is exchanged.
	exchangeEvery = 200 * time.Millisecond
)

// latencies of requests, from when they were due.
type latencies struct{ p50, p99, longest time.Duration }

func summarize(all []time.Duration) latencies {
	slices.Sort(all)
	return latencies{p50: statistics.Quantile(all, 0.5), p99: statistics.Quantile(all, 0.99), longest: statistics.Quantile(all, 1)}
}

// underLoad measures requests while all policies stay, and while one after the other is compiled again and exchanged.
func underLoad(ctx context.Context, duration time.Duration, compiler *rego.Compiler, policies library, vm *subject) (still, exchanged latencies, exchanges int, err error) {
	specs := policies.specs(loaded)
	entries, err := specs.compile(ctx, compiler)
	if err != nil {
		return still, exchanged, 0, err
	}
	var current atomic.Pointer[policyset.Set]
	current.Store(policyset.NewSet(entries))
	evaluator := policyset.NewEvaluator(policyset.Options{})

	all, err := load(ctx, duration, vm, evaluator, &current)
	if err != nil {
		return still, exchanged, 0, err
	}
	still = summarize(all)

	exchanging, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		var err error
		exchanges, err = exchange(exchanging, compiler, specs, entries, &current, evaluator)
		done <- err
	}()
	all, err = load(ctx, duration, vm, evaluator, &current)
	stop()
	if failed := <-done; err == nil {
		err = failed
	}
	return still, summarize(all), exchanges, err
}

// exchange compiles one policy after the other again, with another parameter so that it is another version, and publishes it, until
// ctx ends.
func exchange(ctx context.Context, compiler *rego.Compiler, specs library, entries []policyset.Entry, current *atomic.Pointer[policyset.Set], evaluator *policyset.Evaluator) (int, error) {
	ticker := time.NewTicker(exchangeEvery)
	defer ticker.Stop()
	entries = slices.Clone(entries)
	for made := 0; ; made++ {
		select {
		case <-ctx.Done():
			return made, nil
		case <-ticker.C:
		}
		at := made % len(entries)
		definition := specs[at].Definition
		definition.Source += "\n# another version\n"
		if made/len(entries)%2 == 1 {
			definition.Source = specs[at].Definition.Source
		}
		policy, err := compiler.Compile(ctx, definition)
		if ctx.Err() != nil {
			return made, nil
		}
		if err != nil {
			return made, err
		}
		entries[at] = specs[at].Entry(policy)
		set := policyset.NewSet(entries)
		current.Store(set)
		evaluator.Retain(set)
	}
}

// load sends requests at a steady rate, whether or not the earlier ones have their answers.
func load(ctx context.Context, duration time.Duration, vm *subject, evaluator *policyset.Evaluator, current *atomic.Pointer[policyset.Set]) ([]time.Duration, error) {
	number := int(duration.Seconds() * perSecond)
	took, failures := make([]time.Duration, number), make([]error, number)
	var group sync.WaitGroup
	start := time.Now()
	for i := range number {
		due := start.Add(time.Duration(i) * time.Second / perSecond)
		time.Sleep(time.Until(due))
		group.Go(func() {
			decision, err := vm.evaluate(ctx, evaluator, current.Load())
			took[i] = time.Since(due)
			if err == nil {
				_, err = sound(decision, loaded)
			}
			failures[i] = err
		})
	}
	group.Wait()
	for _, err := range failures {
		if err != nil {
			return nil, err
		}
	}
	return took, nil
}
