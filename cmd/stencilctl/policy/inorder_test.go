package policy

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// upTo reads the numbers from 0.
func upTo(n int) func(context.Context, func(int) error) error {
	return func(_ context.Context, add func(int) error) error {
		for i := range n {
			if err := add(i); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestResultsHaveTheOrderOfWhatIsRead(t *testing.T) {
	const many = 4 * readAhead
	var busy, most atomic.Int64
	var got []int
	err := inOrder(t.Context(), upTo(many), func(_ context.Context, i int) (int, error) {
		most.Store(max(most.Load(), busy.Add(1)))
		defer busy.Add(-1)
		if i%7 == 0 {
			time.Sleep(time.Millisecond) // later ones are ready before
		}
		return 2 * i, nil
	}, func(result int) error {
		got = append(got, result)
		return nil
	})
	if err != nil || len(got) != many || !slices.IsSorted(got) || got[many-1] != 2*(many-1) {
		t.Errorf("%v, %d results: %v", err, len(got), got)
	}
	if limit := int64(runtime.GOMAXPROCS(0)); most.Load() > limit {
		t.Errorf("%d at a time, at most %d are allowed", most.Load(), limit)
	}
}

func TestTheFirstErrorEndsAll(t *testing.T) {
	broken := errors.New("broken")
	same := func(_ context.Context, i int) (int, error) { return i, nil }
	all := func(int) error { return nil }
	const many = 1 << 20
	for name, run := range map[string]func(ctx context.Context) error{
		"of reading": func(ctx context.Context) error {
			return inOrder(ctx, func(_ context.Context, add func(int) error) error { return errors.Join(add(1), broken) }, same, all)
		},
		"of an evaluation": func(ctx context.Context) error {
			return inOrder(ctx, upTo(many), func(_ context.Context, i int) (int, error) {
				if i == 300 {
					return 0, broken
				}
				return i, nil
			}, all)
		},
		"of taking": func(ctx context.Context) error {
			return inOrder(ctx, upTo(many), same, func(i int) error {
				if i == 300 {
					return broken
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context()); !errors.Is(err, broken) {
				t.Errorf("got %v, want %v", err, broken)
			}
		})
	}
	t.Run("the end of the context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		taken := 0
		err := inOrder(ctx, upTo(many), same, func(int) error {
			if taken++; taken == 10 {
				cancel()
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) || taken > 2*readAhead+10 {
			t.Errorf("%v after %d", err, taken)
		}
	})
}
