package deadline

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestBudget(t *testing.T) {
	type charge struct {
		passed time.Duration
		load   Load
	}
	for name, tc := range map[string]struct {
		limit        time.Duration
		charges      []charge
		wantSpent    time.Duration
		wantWaited   time.Duration
		wantExceeded bool
	}{
		"time on an idle machine is spent in full": {
			limit: 10 * time.Second, charges: []charge{{4 * time.Second, Load{Runnable: 1, Cores: 2}}, {6 * time.Second, Load{Runnable: 2, Cores: 2}}},
			wantSpent: 10 * time.Second, wantWaited: 10 * time.Second, wantExceeded: true,
		},
		"time on an overloaded machine is spent by the share of a task": {
			limit: 10 * time.Second, charges: []charge{{8 * time.Second, Load{Runnable: 8, Cores: 2}}},
			wantSpent: 2 * time.Second, wantWaited: 8 * time.Second,
		},
		"the load counts while it lasts": {
			limit: 10 * time.Second, charges: []charge{{8 * time.Second, Load{Runnable: 8, Cores: 2}}, {8 * time.Second, Load{Runnable: 1, Cores: 2}}},
			wantSpent: 10 * time.Second, wantWaited: 16 * time.Second, wantExceeded: true,
		},
		"a wait is stretched six times at most": {
			limit: 10 * time.Second, charges: []charge{{60 * time.Second, Load{Runnable: 1000, Cores: 1}}},
			wantSpent: 10 * time.Second, wantWaited: 60 * time.Second, wantExceeded: true,
		},
		"time with an unknown load is spent in full": {
			limit: 10 * time.Second, charges: []charge{{3 * time.Second, Load{}}, {3 * time.Second, Load{Runnable: 5}}, {3 * time.Second, Load{Cores: 2}}},
			wantSpent: 9 * time.Second, wantWaited: 9 * time.Second,
		},
		"a clock that goes back spends nothing": {
			limit: 10 * time.Second, charges: []charge{{-time.Hour, Load{Runnable: 1, Cores: 2}}},
		},
		"no limit is exceeded at once": {wantExceeded: true},
	} {
		t.Run(name, func(t *testing.T) {
			budget := NewBudget(tc.limit)
			for _, one := range tc.charges {
				budget.Charge(one.passed, one.load)
			}
			if budget.spent != tc.wantSpent || budget.Waited() != tc.wantWaited || budget.Exceeded() != tc.wantExceeded {
				t.Errorf("want %s of %s spent, exceeded %v; got %s of %s, %v", tc.wantSpent, tc.wantWaited, tc.wantExceeded,
					budget.spent, budget.Waited(), budget.Exceeded())
			}
		})
	}
}

func TestRunnable(t *testing.T) {
	for name, tc := range map[string]struct {
		loadavg string
		want    int
	}{
		"the fourth field counts runnable tasks": {loadavg: "7.64 6.16 5.75 9/186 3323\n", want: 9},
		"a text of fewer fields is unknown":      {loadavg: "7.64 6.16"},
		"a field without a slash is unknown":     {loadavg: "7.64 6.16 5.75 9 3323"},
		"a field without a number is unknown":    {loadavg: "7.64 6.16 5.75 x/186 3323"},
		"a negative number is unknown":           {loadavg: "7.64 6.16 5.75 -1/186 3323"},
		"no text is unknown":                     {},
	} {
		t.Run(name, func(t *testing.T) {
			if got := runnable(tc.loadavg); got != tc.want {
				t.Errorf("want %d, got %d", tc.want, got)
			}
		})
	}
}

func TestExceededError(t *testing.T) {
	last := errors.New("it is not ready")
	for name, tc := range map[string]struct {
		err  *ExceededError
		want string
	}{
		"without a load": {
			err:  &ExceededError{What: "a template is ready", Limit: time.Minute, Waited: time.Minute, Last: last},
			want: "waiting until a template is ready: not within 1m0s; last: it is not ready",
		},
		"under a load": {
			err:  &ExceededError{What: "a template is ready", Limit: time.Minute, Waited: 2 * time.Minute, Last: last},
			want: "waiting until a template is ready: not within 1m0s, stretched to 2m0s because the machine was overloaded; last: it is not ready",
		},
		"without a complaint": {
			err:  &ExceededError{What: "a template is ready", Limit: time.Minute, Waited: time.Minute},
			want: "waiting until a template is ready: not within 1m0s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.err.Error(); got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
			if !errors.Is(tc.err, context.DeadlineExceeded) {
				t.Error("it is no context.DeadlineExceeded")
			}
		})
	}
}

func TestWait(t *testing.T) {
	complaint := errors.New("not yet")
	t.Run("ends when there is no complaint", func(t *testing.T) {
		calls := 0
		err := Wait(t.Context(), "it is there", time.Minute, func(context.Context) error {
			if calls++; calls < 3 {
				return complaint
			}
			return nil
		})
		if err != nil || calls != 3 {
			t.Errorf("want no error after 3 calls, got %v after %d", err, calls)
		}
	})
	t.Run("fails with the last complaint when its budget is spent", func(t *testing.T) {
		err := Wait(t.Context(), "it is there", 100*time.Millisecond, func(context.Context) error { return complaint })
		var exceeded *ExceededError
		if !errors.As(err, &exceeded) || !errors.Is(err, complaint) || exceeded.What != "it is there" || exceeded.Waited < 100*time.Millisecond {
			t.Errorf("got %v", err)
		}
	})
	t.Run("retains a complaint that says more than the end of its context", func(t *testing.T) {
		first := true
		err := Wait(t.Context(), "it is there", 200*time.Millisecond, func(ctx context.Context) error {
			if first {
				first = false
				return complaint
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, complaint) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("fails with the cause of its context", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("the test has ended"))
		err := Wait(ctx, "it is there", time.Minute, func(context.Context) error { return complaint })
		if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the test has ended") || !errors.Is(err, complaint) {
			t.Errorf("got %v", err)
		}
	})
}

func TestPause(t *testing.T) {
	for name, tc := range map[string]struct{ waited, check, want time.Duration }{
		"a check that costs nothing":        {time.Minute, time.Millisecond, 50 * time.Millisecond},
		"the first check":                   {100 * time.Millisecond, 100 * time.Millisecond, 50 * time.Millisecond},
		"a short wait for an expensive one": {2 * time.Second, time.Second, 500 * time.Millisecond},
		"a long wait for kubectl":           {time.Minute, 100 * time.Millisecond, time.Second},
		"a wait of seconds for kubectl":     {4 * time.Second, 100 * time.Millisecond, 500 * time.Millisecond},
		"a long wait for an expensive one":  {time.Minute, time.Second, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pause(tc.waited, tc.check); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
