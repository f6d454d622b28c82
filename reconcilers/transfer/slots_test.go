package transfer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func called(name string) place {
	return place{directionImport, types.NamespacedName{Namespace: "a", Name: name}}
}

// newSlots returns slots after a restart of the manager, at which these transfers were in progress.
func newSlots(limit int, begun ...place) *slots {
	return &slots{limit: limit, held: map[place]bool{}, waiting: map[place]time.Time{}, recover: func(context.Context) ([]place, error) { return begun, nil }}
}

func (s *slots) takes(t *testing.T, name string, created int64, want bool) {
	t.Helper()
	got, err := s.take(t.Context(), called(name), time.Unix(created, 0))
	if err != nil || got != want {
		t.Errorf("%s may begin: %t, want %t; %v", name, got, want, err)
	}
}

func TestTransfersBeginInTheOrderOfTheirCreation(t *testing.T) {
	s := newSlots(2, called("before"))
	s.takes(t, "before", 1, true)
	s.takes(t, "first", 2, true)
	s.takes(t, "third", 4, false)
	s.takes(t, "second", 3, false)
	if held, waiting := s.counts(); held != 2 || waiting != 2 {
		t.Errorf("%d in progress and %d waiting, want 2 and 2", held, waiting)
	}
	s.leave(called("before"))
	s.takes(t, "third", 4, false)
	s.takes(t, "second", 3, true)
	// One that waits and is deleted makes no other wait.
	s.takes(t, "fourth", 5, false)
	s.leave(called("third"))
	s.leave(called("first"))
	s.takes(t, "fourth", 5, true)
	// It continues as long as it has not ended.
	s.takes(t, "fourth", 5, true)
	if held, waiting := s.counts(); held != 2 || waiting != 0 {
		t.Errorf("%d in progress and %d waiting, want 2 and 0", held, waiting)
	}
}

func TestNothingBeginsUntilItIsKnownWhatIsInProgress(t *testing.T) {
	s := newSlots(1)
	fault := errors.New("the API server does not answer")
	s.recover = func(context.Context) ([]place, error) { return nil, fault }
	if begins, err := s.take(t.Context(), called("web"), time.Unix(1, 0)); begins || !errors.Is(err, fault) {
		t.Errorf("it begins: %t, %v", begins, err)
	}
	s.recover = func(context.Context) ([]place, error) { return []place{called("before")}, nil }
	s.takes(t, "web", 1, false)
	s.leave(called("before"))
	s.takes(t, "web", 1, true)
}

// More transfers than there are places, at the same time: never more than the limit, and each has its turn.
func TestTheLimitOfTransfersHolds(t *testing.T) {
	const limit, all = 3, 40
	s := newSlots(limit)
	var running, most atomic.Int64
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() {
			p := called(fmt.Sprint(i))
			for {
				begins, err := s.take(t.Context(), p, time.Unix(int64(i), 0))
				if err != nil {
					t.Error(err)
					return
				}
				if begins {
					break
				}
				time.Sleep(time.Millisecond)
			}
			now := running.Add(1)
			for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
			}
			time.Sleep(time.Millisecond)
			running.Add(-1)
			s.leave(p)
		})
	}
	group.Wait()
	if most.Load() > limit {
		t.Errorf("%d at a time, want at most %d", most.Load(), limit)
	}
	if held, waiting := s.counts(); held != 0 || waiting != 0 {
		t.Errorf("%d in progress and %d waiting, want none", held, waiting)
	}
}
