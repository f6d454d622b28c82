package load

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func TestLoad(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		load         Load
		failAt       int64
		wantMeasured int
		wantSent     int64
		wantError    error
	}{
		"sends the measured requests after the others, and counts only them": {
			load: Load{Clients: 1, Warmup: 3, Requests: 10, Limit: time.Minute}, wantMeasured: 10, wantSent: 13,
		},
		"many clients together send no more than the number": {
			load: Load{Clients: 8, Warmup: 8, Requests: 100, Limit: time.Minute}, wantMeasured: 100, wantSent: 108,
		},
		"more clients than requests do no harm": {
			load: Load{Clients: 32, Warmup: 0, Requests: 5, Limit: time.Minute}, wantMeasured: 5, wantSent: 5,
		},
		"no time is no request": {
			load: Load{Clients: 2, Warmup: 5, Requests: 5, Limit: 0}, wantMeasured: 0, wantSent: 0,
		},
		"an error ends everything and is returned": {
			load: Load{Clients: 1, Warmup: 0, Requests: 1000, Limit: time.Minute}, failAt: 7, wantSent: 7, wantError: broken,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			count := func(context.Context, int) error {
				if sent.Add(1) == tc.failAt {
					return broken
				}
				return nil
			}
			if err := tc.load.Warm(t.Context(), count); err != nil {
				t.Fatal(err)
			}
			got, err := tc.load.Measure(t.Context(), count)
			if !errors.Is(err, tc.wantError) || (err != nil && tc.wantError == nil) {
				t.Fatalf("error %v, want %v", err, tc.wantError)
			}
			if n := sent.Load(); n != tc.wantSent {
				t.Errorf("%d requests were sent, want %d", n, tc.wantSent)
			}
			if err == nil && len(got.Latencies) != tc.wantMeasured {
				t.Errorf("%d requests were measured, want %d", len(got.Latencies), tc.wantMeasured)
			}
			if !slices.IsSorted(got.Latencies) {
				t.Error("the latencies are not sorted")
			}
		})
	}
}

func TestLoadEndsTheOtherClientsWhenOneFails(t *testing.T) {
	broken := errors.New("broken")
	_, err := Load{Clients: 4, Requests: 4, Limit: time.Minute}.Measure(t.Context(), func(ctx context.Context, client int) error {
		if client == 0 {
			return broken
		}
		<-ctx.Done() // Without the cancellation this would wait for ever.
		return ctx.Err()
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

func TestEachCallsEveryNumberOnceAndEndsWithTheFirstError(t *testing.T) {
	var sum atomic.Int64
	if err := Each(t.Context(), 100, 8, func(_ context.Context, number int) error { sum.Add(int64(number)); return nil }); err != nil || sum.Load() != 4950 {
		t.Errorf("sum %d, error %v", sum.Load(), err)
	}
	broken := errors.New("broken")
	err := Each(t.Context(), 100, 8, func(ctx context.Context, number int) error {
		if number == 0 {
			return broken
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}
