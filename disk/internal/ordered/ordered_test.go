package ordered

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
)

type job struct{ number, square int }

func numbers(count int) func(*job) (bool, error) {
	next := 0
	return func(j *job) (bool, error) {
		j.number = next
		next++
		return j.number < count, nil
	}
}

func TestJobsAreDeliveredInOrder(t *testing.T) {
	for _, workers := range []int{1, 2, 8} {
		var made atomic.Int64
		var got, want []int
		err := Work[job]{
			Workers: workers,
			New:     func() *job { made.Add(1); return &job{} },
			Next:    numbers(1000),
			Do:      func(j *job) error { j.square = j.number * j.number; return nil },
			Deliver: func(j *job) error { got = append(got, j.square); return nil },
		}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1000 {
			want = append(want, i*i)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d workers deliver %v", workers, got)
		}
		if limit := int64(2*workers + 1); made.Load() > limit {
			t.Errorf("%d workers need %d jobs, more than %d", workers, made.Load(), limit)
		}
	}
}

func TestTheErrorOfAnyStepEndsTheWork(t *testing.T) {
	problem := errors.New("no")
	fail := func(j *job) error {
		if j.number == 100 {
			return problem
		}
		return nil
	}
	pass := func(*job) error { return nil }
	for name, w := range map[string]Work[job]{
		"next":    {Do: pass, Deliver: pass, Next: func(*job) (bool, error) { return false, problem }},
		"do":      {Do: fail, Deliver: pass, Next: numbers(1 << 30)},
		"deliver": {Do: pass, Deliver: fail, Next: numbers(1 << 30)},
	} {
		w.Workers, w.New = 3, func() *job { return &job{} }
		if err := w.Run(t.Context()); !errors.Is(err, problem) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCancellationEndsTheWork(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := Work[job]{
		Workers: 2,
		New:     func() *job { return &job{} },
		Next:    numbers(1 << 30),
		Do:      func(*job) error { return nil },
		Deliver: func(j *job) error {
			if j.number == 50 {
				cancel()
			}
			return nil
		},
	}.Run(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
