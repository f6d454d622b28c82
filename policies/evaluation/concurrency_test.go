package evaluation_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
)

// TestSetsAreReplacedUnderLoad replaces the set, also by one without a policy that is
// being evaluated, while requests are decided. Each request must be decided by the
// set that it started with.
func TestSetsAreReplacedUnderLoad(t *testing.T) {
	const requesters, replacements, size = 4, 300, 20
	generation := func(n int) *policyset.Set {
		var entries []policyset.Entry
		for i := range size - n%3 { // some policies come and go
			p := denying(fmt.Sprintf("p%02d", i), fmt.Sprint(n))
			if i > 0 {
				p = denying(p.name, "unchanged")
			} else {
				p.digest = fmt.Sprint("sha256:", n)
			}
			entries = append(entries, policyset.Entry{Policy: p})
		}
		entries = append(entries, policyset.Entry{Policy: panicking("q")}, policyset.Entry{Policy: slow("r"), Timeout: time.Millisecond})
		return policyset.NewSet(entries)
	}
	evaluator := policyset.NewEvaluator(policyset.Options{Deadline: time.Minute})
	var current atomic.Pointer[policyset.Set]
	current.Store(generation(0))

	var requests sync.WaitGroup
	over := make(chan struct{})
	for range requesters {
		requests.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				set := current.Load()
				entries := set.Matching(policyset.Query{Operation: "CREATE", Kind: "VirtualMachine"})
				decision := evaluator.Evaluate(t.Context(), entries, nil)
				if len(decision.Evaluations) != set.Len() {
					t.Errorf("%d evaluations of %d policies", len(decision.Evaluations), set.Len())
				}
				for i, evaluation := range decision.Evaluations {
					if evaluation.Policy != entries[i].Policy.Name() || evaluation.Digest != entries[i].Policy.Digest() {
						t.Errorf("evaluated %s %s, want %s", evaluation.Policy, evaluation.Digest, entries[i].Policy.Name())
					}
				}
				evaluator.Quarantined("r")
			}
		})
	}
	var count uint64
	for n := range replacements {
		next := generation(n + 1)
		current.Store(next)
		evaluator.Retain(next)
		got := evaluator.Statistics("p05", "sha256:p05").Count
		if got < count {
			t.Fatalf("the statistics of a policy that stayed went from %d to %d", count, got)
		}
		count = got
	}
	eventually(t, "a policy that stayed is evaluated", func() bool {
		return evaluator.Statistics("p05", "sha256:p05").Count > count
	})
	close(over)
	requests.Wait()
}
