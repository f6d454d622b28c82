package await_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmstencil/stencil/internal/await"
)

func TestSignal(t *testing.T) {
	var signal await.Signal
	signal.Send() // Nobody waits.
	first, second := signal.Changed(), signal.Changed()
	select {
	case <-first:
		t.Fatal("a change before the call was reported")
	default:
	}
	signal.Send()
	<-first
	<-second
	select {
	case <-signal.Changed():
		t.Error("one change was reported twice")
	default:
	}
}

func TestUntil(t *testing.T) {
	never := func() bool { return false }
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		name      string
		ctx       context.Context
		timeout   time.Duration
		condition func() bool
		want      bool
	}{
		{"a condition that holds needs no time", cancelled, 0, func() bool { return true }, true},
		{"the timeout ends it", t.Context(), time.Millisecond, never, false},
		{"the context ends it", cancelled, time.Hour, never, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := await.Until(tc.ctx, tc.timeout, &await.Signal{}, tc.condition); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// TestUntilMissesNoChange sends each signal while the waiting goroutines may be anywhere.
func TestUntilMissesNoChange(t *testing.T) {
	var (
		signal  await.Signal
		state   atomic.Int64
		waiting sync.WaitGroup
	)
	for range 4 {
		waiting.Go(func() {
			for want := range int64(1000) {
				if !await.Until(context.Background(), time.Minute, &signal, func() bool { return state.Load() >= want }) {
					t.Errorf("change %d was missed", want)
					return
				}
			}
		})
	}
	for range 1000 {
		state.Add(1)
		signal.Send()
	}
	waiting.Wait()
}
