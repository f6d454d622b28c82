package evaluation_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

// TestEvaluationsEndWhileTheProcessIsStarved evaluates a policy without end, in many requests at once, while one processor is shared with goroutines that
// do not stop, so that it waits longer between two steps than it may take. Evaluations are left behind then, a limited number at a time, and each ends
// by itself.
func TestEvaluationsEndWhileTheProcessIsStarved(t *testing.T) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	endless, err := compiler.Compile(t.Context(), rego.Definition{Name: "endless", Source: "package p\n\ndeny contains \"x\" if {\n" +
		"some a in numbers.range(1, 10000)\nsome b in numbers.range(1, 10000)\na + b == -1\n}\n"})
	if err != nil {
		t.Fatal(err)
	}
	in, err := rego.NewInput(rego.Document{})
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var stop atomic.Bool
	var busy sync.WaitGroup
	for range 24 {
		busy.Go(func() {
			for !stop.Load() {
			}
		})
	}
	const workers, most = 2, 2 + 2*4
	var running, peak atomic.Int64
	counted := policy("endless", func(ctx context.Context) (rego.Result, error) {
		now := running.Add(1)
		defer running.Add(-1)
		for seen := peak.Load(); now > seen && !peak.CompareAndSwap(seen, now); seen = peak.Load() {
		}
		return endless.Evaluate(ctx, in)
	})
	evaluator := policyset.NewEvaluator(policyset.Options{
		Workers: workers, Deadline: 3 * time.Second,
		// As the kernel reports it for a process whose node is overloaded.
		CPUTime: func() (time.Duration, bool) { return 0, true },
	})
	var requests sync.WaitGroup
	for range 10 * most {
		requests.Go(func() {
			decision := evaluator.Evaluate(t.Context(), []policyset.Entry{{Policy: counted, Timeout: 30 * time.Millisecond}}, nil)
			if got := decision.Evaluations[0].Result; got != policyset.ResultTimeout {
				t.Errorf("result %s", got)
			}
		})
	}
	requests.Wait()
	if got := peak.Load(); got > most {
		t.Errorf("%d evaluations ran at once, at most %d may", got, most)
	}
	t.Logf("%d evaluations ran at once, %d when the requests had ended", peak.Load(), running.Load())
	eventually(t, "every evaluation ends although the process is starved", func() bool { return running.Load() == 0 })
	stop.Store(true)
	busy.Wait()
	if _, found := evaluator.Quarantined("endless"); found {
		t.Error("the policy is quarantined because the process was starved")
	}
}
