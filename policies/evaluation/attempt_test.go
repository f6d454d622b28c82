package evaluation_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

// attempting is a policy whose evaluation begins with an attempt. It records what is called, in a shared list.
type attempting struct {
	fake
	attempt func(context.Context) (rego.Result, bool, error)
	calls   *calls
}

type calls struct {
	lock sync.Mutex
	made []string
}

func (c *calls) add(what string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.made = append(c.made, what)
}

func (a *attempting) Attempt(ctx context.Context, _ *rego.Input) (rego.Result, bool, error) {
	a.calls.add("attempt " + a.name)
	return a.attempt(ctx)
}

func (a *attempting) Complete(ctx context.Context, in *rego.Input) (rego.Result, error) {
	a.calls.add("complete " + a.name)
	return a.fake.Evaluate(ctx, in)
}

func (a *attempting) Evaluate(ctx context.Context, in *rego.Input) (rego.Result, error) {
	a.calls.add("evaluate " + a.name)
	return a.fake.Evaluate(ctx, in)
}

func TestFewPoliciesAreAttemptedFirst(t *testing.T) {
	decided := func(result rego.Result, err error) func(context.Context) (rego.Result, bool, error) {
		return func(context.Context) (rego.Result, bool, error) { return result, true, err }
	}
	undecided := func(context.Context) (rego.Result, bool, error) { return rego.Result{}, false, nil }
	slowly := func(context.Context) (rego.Result, bool, error) {
		time.Sleep(20 * time.Millisecond)
		return rego.Result{}, true, nil
	}
	poison := func(context.Context) (rego.Result, bool, error) { panic("poison") }

	for name, tc := range map[string]struct {
		attempts map[string]func(context.Context) (rego.Result, bool, error)
		calls    []string
		results  map[string]policyset.Result
		denials  []string
	}{
		"decided": {
			attempts: map[string]func(context.Context) (rego.Result, bool, error){
				"a": decided(rego.Result{}, nil), "b": decided(rego.Result{Deny: findings("no")}, nil), "c": decided(rego.Result{}, errors.New("no data")),
			},
			calls:   []string{"attempt a", "attempt b", "attempt c"},
			results: map[string]policyset.Result{"a": policyset.ResultAllow, "b": policyset.ResultDeny, "c": policyset.ResultError},
			denials: []string{"b: no", "c: could not be evaluated: no data"},
		},
		"not decided": {
			attempts: map[string]func(context.Context) (rego.Result, bool, error){"a": undecided, "b": decided(rego.Result{}, nil)},
			calls:    []string{"attempt a", "attempt b", "complete a"},
			results:  map[string]policyset.Result{"a": policyset.ResultDeny, "b": policyset.ResultAllow},
			denials:  []string{"a: by an evaluation"},
		},
		"a panic": {
			attempts: map[string]func(context.Context) (rego.Result, bool, error){"a": poison},
			calls:    []string{"attempt a", "complete a"},
			results:  map[string]policyset.Result{"a": policyset.ResultDeny},
			denials:  []string{"a: by an evaluation"},
		},
		"after one that takes long": {
			attempts: map[string]func(context.Context) (rego.Result, bool, error){"a": slowly, "b": decided(rego.Result{}, nil)},
			calls:    []string{"attempt a", "evaluate b"},
			results:  map[string]policyset.Result{"a": policyset.ResultAllow, "b": policyset.ResultDeny},
			denials:  []string{"b: by an evaluation"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			made := &calls{}
			var entries []policyset.Entry
			for _, policy := range slices.Sorted(maps.Keys(tc.attempts)) {
				entries = append(entries, policyset.Entry{Policy: &attempting{*denying(policy, "by an evaluation"), tc.attempts[policy], made}})
			}
			observed := map[string]policyset.Result{}
			e := policyset.NewEvaluator(policyset.Options{Workers: 1, Observe: func(e policyset.Evaluation) { observed[e.Policy] = e.Result }})
			decision := e.Evaluate(t.Context(), entries, nil)
			if !slices.Equal(made.made, tc.calls) {
				t.Errorf("calls: %q, want %q", made.made, tc.calls)
			}
			for policy, result := range tc.results {
				if resultsOf(decision)[policy] != result || observed[policy] != result {
					t.Errorf("policy %s: %s, observed %s, want %s", policy, resultsOf(decision)[policy], observed[policy], result)
				}
			}
			if !slices.Equal(texts(decision.Denials), tc.denials) {
				t.Errorf("denials: %q, want %q", texts(decision.Denials), tc.denials)
			}
			for _, policy := range slices.Sorted(maps.Keys(tc.attempts)) {
				if s := e.Statistics(policy, "sha256:"+policy); s.Count != 1 {
					t.Errorf("policy %s has %d evaluations in its statistics", policy, s.Count)
				}
			}
		})
	}
}

// TestNoAttempts checks where the workers evaluate from the beginning: many policies, which they share, no idle processor, and a policy with timeouts.
func TestNoAttempts(t *testing.T) {
	decided := func(context.Context) (rego.Result, bool, error) { return rego.Result{}, true, nil }
	t.Run("many policies", func(t *testing.T) {
		made := &calls{}
		var entries []policyset.Entry
		for i := range 9 {
			entries = append(entries, policyset.Entry{Policy: &attempting{*allowing(fmt.Sprintf("p%d", i)), decided, made}})
		}
		policyset.NewEvaluator(policyset.Options{}).Evaluate(t.Context(), entries, nil)
		if len(made.made) != 9 || slices.ContainsFunc(made.made, func(call string) bool { return call[:8] != "evaluate" }) {
			t.Errorf("calls: %q", made.made)
		}
	})
	t.Run("no idle processor", func(t *testing.T) {
		made, release := &calls{}, make(chan struct{})
		e := policyset.NewEvaluator(policyset.Options{Workers: 1})
		busy := make(chan struct{})
		go func() {
			defer close(busy)
			e.Evaluate(t.Context(), []policyset.Entry{{Policy: stuck("stuck", release), Timeout: time.Minute}}, nil)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		eventually(t, "the policy is evaluated", func() bool {
			made.made = nil
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			e.Evaluate(short, []policyset.Entry{{Policy: &attempting{*allowing("p"), decided, made}}}, nil)
			return len(made.made) == 0
		})
		close(release)
		<-busy
	})
	t.Run("a policy with timeouts", func(t *testing.T) {
		made := &calls{}
		undecided := func(context.Context) (rego.Result, bool, error) { return rego.Result{}, false, nil }
		entries := []policyset.Entry{{Policy: &attempting{*slow("p"), undecided, made}, Timeout: time.Millisecond}}
		e := policyset.NewEvaluator(policyset.Options{CPUTime: noCPUTime})
		e.Evaluate(t.Context(), entries, nil)
		e.Evaluate(t.Context(), entries, nil)
		if want := []string{"attempt p", "complete p", "evaluate p"}; !slices.Equal(made.made, want) {
			t.Errorf("calls: %q, want %q", made.made, want)
		}
	})
}
