package evaluation_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

// ward is an evaluator with one policy, which the test can make slow.
type ward struct {
	t         *testing.T
	clock     *testingclock.FakePassiveClock
	evaluator *policyset.Evaluator
	entries   []policyset.Entry
	ill       atomic.Bool
	// cpuPerCheck is the CPU time that the process uses between two calls of CPUTime.
	cpuTime, cpuPerCheck atomic.Int64
	announced            []string
	lock                 sync.Mutex
}

func newWard(t *testing.T) *ward {
	w := &ward{t: t, clock: testingclock.NewFakePassiveClock(time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC))}
	w.ill.Store(true)
	w.evaluator = policyset.NewEvaluator(policyset.Options{
		Clock: w.clock, OnQuarantine: w.announce,
		CPUTime: func() (time.Duration, bool) { return time.Duration(w.cpuTime.Add(w.cpuPerCheck.Load())), true },
	})
	w.cpuPerCheck.Store(int64(time.Hour))
	w.entries = []policyset.Entry{{Timeout: time.Millisecond, Policy: policy("p", func(ctx context.Context) (rego.Result, error) {
		if !w.ill.Load() {
			return rego.Result{}, nil
		}
		<-ctx.Done()
		return rego.Result{}, ctx.Err()
	})}}
	return w
}

func (w *ward) announce(q policyset.Quarantine) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if q.Policy != "p" || q.Digest != "sha256:p" {
		w.t.Errorf("announced for another policy: %+v", q)
	}
	text := fmt.Sprintf("%d for %v", q.Times, q.Until.Sub(w.clock.Now()))
	if q.Ended {
		text = fmt.Sprintf("%d ended", q.Times)
	}
	w.announced = append(w.announced, text)
}

// request evaluates the policy for n requests, which must all have the same result.
func (w *ward) request(n int, want policyset.Result) policyset.Decision {
	w.t.Helper()
	var decision policyset.Decision
	for i := range n {
		decision = w.evaluator.Evaluate(w.t.Context(), w.entries, nil)
		if got := decision.Evaluations[0].Result; got != want {
			w.t.Fatalf("request %d of %d: outcome %s, want %s", i+1, n, got, want)
		}
	}
	return decision
}

func (w *ward) pass(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

func (w *ward) wantAnnounced(want ...string) {
	w.t.Helper()
	w.lock.Lock()
	defer w.lock.Unlock()
	if diff := cmp.Diff(want, w.announced); diff != "" {
		w.t.Errorf("announced (-want +got):\n%s", diff)
	}
	w.announced = nil
}

func TestQuarantine(t *testing.T) {
	t.Run("begins after five timeouts in a row, and the failure mode applies", func(t *testing.T) {
		w := newWard(t)
		w.request(policyset.DefaultQuarantineStrikes, policyset.ResultTimeout)
		decision := w.request(3, policyset.ResultQuarantined)
		const want = "p: could not be evaluated: it is quarantined until 2026-11-21T20:00:10Z because its evaluations repeatedly took too long"
		if diff := cmp.Diff([]string{want}, texts(decision.Denials)); diff != "" {
			t.Error(diff)
		}
		w.entries[0].FailureMode = policyset.FailureModeAllow
		if decision := w.request(1, policyset.ResultQuarantined); len(decision.Denials) > 0 {
			t.Errorf("denied under failure mode Allow: %v", decision.Denials)
		}
		w.wantAnnounced("1 for 10s")
		if q, found := w.evaluator.Quarantined("p"); !found || q.Times != 1 || q.Policy != "p" {
			t.Errorf("quarantine %+v %v", q, found)
		}
		got := w.evaluator.Statistics("p", "sha256:p")
		if got.Count != 5 || got.Timeouts != 5 || got.Skipped != 4 || got.P50Microseconds < 900 {
			t.Errorf("statistics %+v", got)
		}
	})
	t.Run("does not begin when one evaluation in between passes", func(t *testing.T) {
		w := newWard(t)
		for range 3 {
			w.ill.Store(true)
			w.request(policyset.DefaultQuarantineStrikes-1, policyset.ResultTimeout)
			w.ill.Store(false)
			w.request(1, policyset.ResultAllow)
		}
		w.wantAnnounced()
	})
	t.Run("does not begin when the timeouts are far apart", func(t *testing.T) {
		w := newWard(t)
		for range 3 * policyset.DefaultQuarantineStrikes {
			w.request(1, policyset.ResultTimeout)
			w.pass(policyset.DefaultQuarantineWindow/2 + time.Second)
		}
		w.wantAnnounced()
	})
	t.Run("lasts longer each time that a trial fails, up to a limit", func(t *testing.T) {
		w := newWard(t)
		w.request(policyset.DefaultQuarantineStrikes, policyset.ResultTimeout)
		w.wantAnnounced("1 for 10s")
		for i, want := range []string{"20s", "40s", "1m20s", "2m40s", "5m20s", "10m0s", "10m0s"} {
			q, _ := w.evaluator.Quarantined("p")
			w.clock.SetTime(q.Until)
			w.request(1, policyset.ResultTimeout)
			w.request(2, policyset.ResultQuarantined)
			w.wantAnnounced(fmt.Sprintf("%d for %s", i+2, want))
		}
	})
	t.Run("ends when a trial passes, and is not forgotten at once", func(t *testing.T) {
		w := newWard(t)
		w.request(policyset.DefaultQuarantineStrikes, policyset.ResultTimeout)
		w.pass(policyset.DefaultQuarantineFirst)
		w.ill.Store(false)
		w.request(3, policyset.ResultAllow)
		w.wantAnnounced("1 for 10s", "1 ended")
		if q, found := w.evaluator.Quarantined("p"); found {
			t.Errorf("still %+v", q)
		}

		w.ill.Store(true)
		w.request(policyset.DefaultQuarantineStrikes, policyset.ResultTimeout)
		w.wantAnnounced("2 for 20s")

		w.pass(20 * time.Second)
		w.ill.Store(false)
		w.request(1, policyset.ResultAllow)
		w.pass(policyset.DefaultQuarantineMax)
		w.request(1, policyset.ResultAllow)
		w.ill.Store(true)
		w.request(policyset.DefaultQuarantineStrikes, policyset.ResultTimeout)
		w.wantAnnounced("2 ended", "1 for 10s")
	})
	t.Run("lets one request try, and goes on when that was given up", func(t *testing.T) {
		w := newWard(t)
		w.request(policyset.DefaultQuarantineStrikes, policyset.ResultTimeout)
		w.pass(policyset.DefaultQuarantineFirst)

		began, ended := make(chan struct{}), make(chan policyset.Result)
		w.entries[0].Timeout = time.Hour
		w.entries[0].Policy = policy("p", func(ctx context.Context) (rego.Result, error) {
			close(began)
			<-ctx.Done()
			return rego.Result{}, ctx.Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { ended <- w.evaluator.Evaluate(ctx, w.entries, nil).Evaluations[0].Result }()
		<-began
		w.request(3, policyset.ResultQuarantined)
		cancel()
		if got := <-ended; got != policyset.ResultError {
			t.Errorf("the trial ended with %s", got)
		}
		w.entries[0].Policy = allowing("p")
		w.request(1, policyset.ResultAllow)
	})
	t.Run("is left behind by a new version", func(t *testing.T) {
		w := newWard(t)
		w.request(policyset.DefaultQuarantineStrikes, policyset.ResultTimeout)
		better := allowing("p")
		better.digest = "sha256:better"
		w.entries[0].Policy = better
		w.request(1, policyset.ResultAllow)
		w.evaluator.Retain(policyset.NewSet(w.entries))
		if q, found := w.evaluator.Quarantined("p"); found {
			t.Errorf("still %+v", q)
		}
		if got := w.evaluator.Statistics("p", "sha256:p"); got.Count != 0 {
			t.Errorf("statistics of a version that is gone: %+v", got)
		}
		if got := w.evaluator.Statistics("p", "sha256:better"); got.Count != 1 {
			t.Errorf("statistics of the version that is kept: %+v", got)
		}
	})
	t.Run("begins after five panics", func(t *testing.T) {
		w := newWard(t)
		p := panicking("p")
		w.entries[0].Policy = p
		w.request(policyset.DefaultQuarantineStrikes, policyset.ResultError)
		w.request(1, policyset.ResultQuarantined)
		w.wantAnnounced("1 for 10s")
	})
	t.Run("does not begin for errors, which take no time", func(t *testing.T) {
		w := newWard(t)
		w.entries[0].Policy = failing("p")
		w.request(3*policyset.DefaultQuarantineStrikes, policyset.ResultError)
		if got := w.evaluator.Statistics("p", "sha256:p"); got.Errors != 15 {
			t.Errorf("statistics %+v", got)
		}
	})
	t.Run("does not begin while the process gets no CPU", func(t *testing.T) {
		w := newWard(t)
		w.cpuPerCheck.Store(0)
		w.request(3*policyset.DefaultQuarantineStrikes, policyset.ResultTimeout)
		release := make(chan struct{})
		w.entries[0].Policy = stuck("p", release)
		w.request(2, policyset.ResultTimeout)
		close(release)
		w.wantAnnounced()
		if got := w.evaluator.Statistics("p", "sha256:p"); got.Timeouts != 3*policyset.DefaultQuarantineStrikes+2 {
			t.Errorf("statistics %+v", got)
		}
	})
	t.Run("begins at once for a policy that does not stop, and lasts until it does", func(t *testing.T) {
		w := newWard(t)
		release := make(chan struct{})
		w.entries[0].Policy = stuck("p", release)
		w.request(1, policyset.ResultTimeout)
		decision := w.request(1, policyset.ResultQuarantined)
		if got := decision.Evaluations[0].Err.Error(); !strings.Contains(got, "does not end") {
			t.Errorf("error %q", got)
		}
		w.pass(time.Hour)
		w.request(1, policyset.ResultQuarantined)
		w.wantAnnounced("1 for 10s")

		close(release)
		eventually(t, "the evaluation that was stuck is over", func() bool {
			q, _ := w.evaluator.Quarantined("p")
			return q.Stuck == 0
		})
		w.request(1, policyset.ResultAllow)
		w.wantAnnounced("1 ended")
	})
}
