package admission

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
		load         load
		failAt       int64
		wantMeasured int
		wantSent     int64
		wantError    error
	}{
		"sends the measured requests after the others, and counts only them": {
			load: load{clients: 1, warmup: 3, requests: 10, limit: time.Minute}, wantMeasured: 10, wantSent: 13,
		},
		"many clients together send no more than the number": {
			load: load{clients: 8, warmup: 8, requests: 100, limit: time.Minute}, wantMeasured: 100, wantSent: 108,
		},
		"more clients than requests do no harm": {
			load: load{clients: 32, warmup: 0, requests: 5, limit: time.Minute}, wantMeasured: 5, wantSent: 5,
		},
		"no time is no request": {
			load: load{clients: 2, warmup: 5, requests: 5, limit: 0}, wantMeasured: 0, wantSent: 0,
		},
		"an error ends everything and is returned": {
			load: load{clients: 1, warmup: 0, requests: 1000, limit: time.Minute}, failAt: 7, wantSent: 7, wantError: broken,
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
			if err := tc.load.warm(t.Context(), count); err != nil {
				t.Fatal(err)
			}
			got, err := tc.load.measure(t.Context(), count)
			if !errors.Is(err, tc.wantError) || (err != nil && tc.wantError == nil) {
				t.Fatalf("error %v, want %v", err, tc.wantError)
			}
			if n := sent.Load(); n != tc.wantSent {
				t.Errorf("%d requests were sent, want %d", n, tc.wantSent)
			}
			if err == nil && len(got.latencies) != tc.wantMeasured {
				t.Errorf("%d requests were measured, want %d", len(got.latencies), tc.wantMeasured)
			}
			if !slices.IsSorted(got.latencies) {
				t.Error("the latencies are not sorted")
			}
		})
	}
}

func TestLoadEndsTheOtherClientsWhenOneFails(t *testing.T) {
	broken := errors.New("broken")
	_, err := load{clients: 4, requests: 4, limit: time.Minute}.measure(t.Context(), func(ctx context.Context, client int) error {
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
