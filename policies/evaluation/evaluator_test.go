package evaluation_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

func TestDecision(t *testing.T) {
	both := rego.Result{Deny: findings("no"), Warn: findings("hm")}
	violation := func(rule policyset.Rule, message string, failure bool) []policyset.Violation {
		return []policyset.Violation{{
			Policy: "p", Title: "Title of p", Severity: rego.SeverityHigh,
			Finding: rego.Finding{Message: message}, Rule: rule, Failure: failure,
		}}
	}
	denied, warned := violation(policyset.RuleDeny, "no", false), violation(policyset.RuleWarn, "hm", false)
	failed := violation(policyset.RuleDeny, "could not be evaluated: division by zero", true)

	for name, tc := range map[string]struct {
		entry policyset.Entry
		want  policyset.Decision
		then  policyset.Result
	}{
		"nothing found": {
			entry: policyset.Entry{Policy: allowing("p")},
			then:  policyset.ResultAllow,
		},
		"findings refuse and warn": {
			entry: policyset.Entry{Policy: finding("p", both)},
			want:  policyset.Decision{Denials: denied, Warnings: warned},
			then:  policyset.ResultDeny,
		},
		"a warning does not refuse": {
			entry: policyset.Entry{Policy: finding("p", rego.Result{Warn: findings("hm")})},
			want:  policyset.Decision{Warnings: warned},
			then:  policyset.ResultWarn,
		},
		"under Warn all findings are warnings": {
			entry: policyset.Entry{Policy: finding("p", both), Enforcement: policyset.EnforcementWarn},
			want:  policyset.Decision{Warnings: slices.Concat(denied, warned)},
			then:  policyset.ResultDeny,
		},
		"under Audit findings are only recorded": {
			entry: policyset.Entry{Policy: finding("p", both), Enforcement: policyset.EnforcementAudit},
			want:  policyset.Decision{Audited: slices.Concat(denied, warned)},
			then:  policyset.ResultDeny,
		},
		"a failure refuses when nothing else is said": {
			entry: policyset.Entry{Policy: failing("p")},
			want:  policyset.Decision{Denials: failed},
			then:  policyset.ResultError,
		},
		"a failure under failure mode Allow is no objection": {
			entry: policyset.Entry{Policy: failing("p"), FailureMode: policyset.FailureModeAllow},
			then:  policyset.ResultError,
		},
		"a failure under Warn is a warning": {
			entry: policyset.Entry{Policy: failing("p"), Enforcement: policyset.EnforcementWarn},
			want:  policyset.Decision{Warnings: failed},
			then:  policyset.ResultError,
		},
		"a failure under Audit is recorded": {
			entry: policyset.Entry{Policy: failing("p"), Enforcement: policyset.EnforcementAudit},
			want:  policyset.Decision{Audited: failed},
			then:  policyset.ResultError,
		},
		"a timeout is a failure": {
			entry: policyset.Entry{Policy: slow("p"), Timeout: time.Millisecond},
			want:  policyset.Decision{Denials: violation(policyset.RuleDeny, "could not be evaluated: it did not end within 1ms", true)},
			then:  policyset.ResultTimeout,
		},
		"a panic is a failure that does not tell its value": {
			entry: policyset.Entry{Policy: panicking("p")},
			want:  policyset.Decision{Denials: violation(policyset.RuleDeny, "could not be evaluated: it failed inside the policy engine (panic)", true)},
			then:  policyset.ResultError,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var observed []policyset.Evaluation
			evaluator := policyset.NewEvaluator(policyset.Options{
				Observe: func(e policyset.Evaluation) { observed = append(observed, e) },
			})
			got := evaluator.Evaluate(t.Context(), []policyset.Entry{tc.entry}, nil)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(policyset.Decision{}, "Evaluations")); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if got.Evaluations[0].Result != tc.then {
				t.Errorf("outcome %s, want %s", got.Evaluations[0].Result, tc.then)
			}
			if len(observed) != 1 || observed[0].Result != tc.then {
				t.Errorf("observed %v", observed)
			}
			if failed := got.Evaluations[0].Err != nil; failed != tc.then.Failed() {
				t.Errorf("error %v with outcome %s", got.Evaluations[0].Err, tc.then)
			}
		})
	}
}

func TestDecisionsAreInOrder(t *testing.T) {
	var entries []policyset.Entry
	var want []string
	for i := range 100 {
		name := fmt.Sprintf("p%03d", i)
		entries = append(entries, policyset.Entry{Policy: denying(name, "first", "second")})
		want = append(want, name+": first", name+": second")
	}
	evaluator := policyset.NewEvaluator(policyset.Options{Workers: 8})
	for range 20 {
		if diff := cmp.Diff(want, texts(evaluator.Evaluate(t.Context(), entries, nil).Denials)); diff != "" {
			t.Fatal(diff)
		}
	}
	if got := evaluator.Statistics("p007", "sha256:p007"); got.Count != 20 || got.P99Microseconds == 0 || got.P50Microseconds > got.P99Microseconds {
		t.Errorf("statistics %+v", got)
	}
	if diff := cmp.Diff(policyset.Decision{}, evaluator.Evaluate(t.Context(), nil, nil)); diff != "" {
		t.Errorf("no policies (-want +got):\n%s", diff)
	}
}

func TestOneBadPolicyDoesNotHinderOthers(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	entries := []policyset.Entry{
		{Policy: panicking("a"), Timeout: 20 * time.Millisecond},
		{Policy: slow("b"), Timeout: 20 * time.Millisecond},
		{Policy: stuck("c", release), Timeout: 20 * time.Millisecond},
		{Policy: failing("d")},
		{Policy: allowing("e")},
		{Policy: denying("f", "no")},
	}
	want := map[string]policyset.Result{
		"a": policyset.ResultError, "b": policyset.ResultTimeout, "c": policyset.ResultTimeout,
		"d": policyset.ResultError, "e": policyset.ResultAllow, "f": policyset.ResultDeny,
	}
	evaluator := policyset.NewEvaluator(policyset.Options{Workers: 1, CPUTime: noCPUTime})
	for range 3 {
		if diff := cmp.Diff(want, resultsOf(evaluator.Evaluate(t.Context(), entries, nil))); diff != "" {
			t.Fatalf("outcomes (-want +got):\n%s", diff)
		}
		want["c"] = policyset.ResultQuarantined // until its first evaluation ends
	}
	var panicked *policyset.PanicError
	decision := evaluator.Evaluate(t.Context(), entries[:1], nil)
	if err := decision.Evaluations[0].Err; !errors.As(err, &panicked) || panicked.Value != "poison" || !strings.Contains(string(panicked.Stack), "helpers_test.go") {
		t.Errorf("the panic is not told: %v", err)
	}
}

func TestSlowPoliciesComeLast(t *testing.T) {
	// Twenty policies that use up their time each would take a second; the request has
	// 120 ms.
	var entries []policyset.Entry
	for i := range 20 {
		entries = append(entries, policyset.Entry{Policy: slow(fmt.Sprintf("a%02d", i)), Timeout: 50 * time.Millisecond})
	}
	entries = append(entries, policyset.Entry{Policy: denying("z", "no")})
	evaluator := policyset.NewEvaluator(policyset.Options{
		Workers: 1, Deadline: 120 * time.Millisecond,
		Quarantine: policyset.QuarantineOptions{Strikes: 1 << 30}, CPUTime: noCPUTime,
	})
	last := policyset.ResultTimeout
	for range 40 {
		began := time.Now()
		last = resultsOf(evaluator.Evaluate(t.Context(), entries, nil))["z"]
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("a request with a deadline of 120 ms took %v", took)
		}
		if last == policyset.ResultDeny {
			return
		}
	}
	t.Errorf("a good policy after slow ones still ends with %s", last)
}

func TestRequestEnds(t *testing.T) {
	t.Run("at its deadline, which is not held against a policy", func(t *testing.T) {
		evaluator := policyset.NewEvaluator(policyset.Options{
			Workers: 1, Deadline: time.Millisecond, Quarantine: policyset.QuarantineOptions{Strikes: 1}, CPUTime: noCPUTime,
		})
		entries := []policyset.Entry{{Policy: slow("a"), Timeout: time.Hour}, {Policy: slow("b"), Timeout: time.Hour}}
		decision := evaluator.Evaluate(t.Context(), entries, nil)
		for _, evaluation := range decision.Evaluations {
			if evaluation.Result != policyset.ResultTimeout || !errors.Is(evaluation.Err, context.DeadlineExceeded) {
				t.Errorf("%+v", evaluation)
			}
			if q, found := evaluator.Quarantined(evaluation.Policy); found {
				t.Errorf("quarantined: %+v", q)
			}
		}
		if len(decision.Denials) != 2 {
			t.Errorf("denials %v", decision.Denials)
		}
	})
	t.Run("when who asked has given up", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		evaluator := policyset.NewEvaluator(policyset.Options{Quarantine: policyset.QuarantineOptions{Strikes: 1}, CPUTime: noCPUTime})
		entries := []policyset.Entry{{Timeout: time.Hour, Policy: policy("a", func(inner context.Context) (rego.Result, error) {
			cancel()
			<-inner.Done()
			return rego.Result{}, inner.Err()
		})}}
		decision := evaluator.Evaluate(ctx, entries, nil)
		if got := decision.Evaluations[0]; got.Result != policyset.ResultError || !errors.Is(got.Err, context.Canceled) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("while all workers are busy", func(t *testing.T) {
		evaluator := policyset.NewEvaluator(policyset.Options{Workers: 1})
		began, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			evaluator.Evaluate(t.Context(), []policyset.Entry{{Timeout: time.Hour, Policy: policy("a", func(context.Context) (rego.Result, error) {
				close(began)
				<-release
				return rego.Result{}, nil
			})}}, nil)
		}()
		<-began
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		decision := evaluator.Evaluate(ctx, []policyset.Entry{{Policy: allowing("b")}}, nil)
		if got := decision.Evaluations[0].Result; got != policyset.ResultTimeout {
			t.Errorf("outcome %s", got)
		}
		close(release)
		<-ended
	})
}

func TestWorkersAreBounded(t *testing.T) {
	const workers = 3
	var now, most atomic.Int64
	full := make(chan struct{})
	reached := sync.OnceFunc(func() { close(full) })
	entries := make([]policyset.Entry, 50)
	for i := range entries {
		// No evaluation is left behind, which would make room for another.
		entries[i].Timeout = time.Minute
		entries[i].Policy = policy(fmt.Sprintf("p%02d", i), func(context.Context) (rego.Result, error) {
			here := now.Add(1)
			defer now.Add(-1)
			for seen := most.Load(); here > seen && !most.CompareAndSwap(seen, here); seen = most.Load() {
			}
			if here == workers {
				reached()
			}
			// The first wait until all workers are busy, whatever the scheduler does.
			select {
			case <-full:
			case <-t.Context().Done():
			}
			for range 100 {
				runtime.Gosched() // so that others can begin
			}
			return rego.Result{}, nil
		})
	}
	evaluator := policyset.NewEvaluator(policyset.Options{Workers: workers, Deadline: time.Minute})
	var requests sync.WaitGroup
	for range 10 {
		requests.Go(func() { evaluator.Evaluate(t.Context(), entries, nil) })
	}
	requests.Wait()
	if got := most.Load(); got != workers {
		t.Errorf("%d policies were evaluated at a time, want %d", got, workers)
	}
}

// While the process receives no CPU time, a policy that does not end is not quarantined: the number of goroutines is limited
// instead.
func TestEvaluationsThatAreLeftBehindAreBounded(t *testing.T) {
	const workers, most = 2, 2 + 2*4
	release := make(chan struct{})
	var running, peak atomic.Int64
	hanging := policy("hanging", func(context.Context) (rego.Result, error) {
		now := running.Add(1)
		defer running.Add(-1)
		for seen := peak.Load(); now > seen && !peak.CompareAndSwap(seen, now); seen = peak.Load() {
		}
		<-release
		return rego.Result{}, nil
	})
	evaluator := policyset.NewEvaluator(policyset.Options{
		Workers: workers, Deadline: 50 * time.Millisecond, CPUTime: func() (time.Duration, bool) { return 0, true },
	})
	entries := []policyset.Entry{{Policy: hanging, Timeout: time.Millisecond}}
	var requests sync.WaitGroup
	for range 4 * most {
		requests.Add(1)
		go func() {
			defer requests.Done()
			if got := evaluator.Evaluate(t.Context(), entries, nil).Evaluations[0].Result; got != policyset.ResultTimeout {
				t.Errorf("outcome %s", got)
			}
		}()
		time.Sleep(time.Millisecond)
	}
	requests.Wait()
	// On a busy host some of them ended before a worker was free.
	deadline := time.Now().Add(time.Minute)
	for running.Load() < most {
		if time.Now().After(deadline) {
			t.Fatalf("%d evaluations run, want %d", running.Load(), most)
		}
		evaluator.Evaluate(t.Context(), entries, nil)
	}
	// Several policies of one request: when the last worker retains its token, policies that have not begun end with
	// ResultTimeout.
	decision := evaluator.Evaluate(t.Context(), []policyset.Entry{entries[0], {Policy: allowing("other")}}, nil)
	for _, evaluation := range decision.Evaluations {
		if evaluation.Result != policyset.ResultTimeout {
			t.Errorf("%s: outcome %s", evaluation.Policy, evaluation.Result)
		}
	}
	if got := peak.Load(); got > most {
		t.Errorf("%d evaluations ran at once, at most %d may", got, most)
	}
	close(release)
	deadline = time.Now().Add(time.Minute)
	for evaluator.Evaluate(t.Context(), []policyset.Entry{{Policy: allowing("after")}}, nil).Evaluations[0].Result != policyset.ResultAllow {
		if time.Now().After(deadline) {
			t.Fatal("the workers are not free again")
		}
	}
}
