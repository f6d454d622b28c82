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
	return &slots{limit: limit, perNamespace: limit, held: map[place]bool{}, waiting: map[place]time.Time{}, recover: func(context.Context) ([]place, error) { return begun, nil }}
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

// of returns a place in a namespace.
func of(namespace, name string) place {
	return place{directionImport, types.NamespacedName{Namespace: namespace, Name: name}}
}

// TestAGreedyNamespaceLeavesPlacesToOthers has one namespace with a hundred transfers that never end, and others that come later.
func TestAGreedyNamespaceLeavesPlacesToOthers(t *testing.T) {
	const limit, each, greedy = 8, 2, 100
	s := newSlots(limit)
	s.perNamespace = each
	begin := func(namespace, name string, created int64) bool {
		t.Helper()
		begins, err := s.take(t.Context(), of(namespace, name), time.Unix(created, 0))
		if err != nil {
			t.Fatal(err)
		}
		return begins
	}
	begun := 0
	for i := range greedy {
		if begin("greedy", fmt.Sprint(i), int64(i)) {
			begun++
		}
	}
	if begun != each {
		t.Errorf("%d of the greedy namespace began, want %d", begun, each)
	}
	if !s.crowded("greedy") || s.crowded("modest") {
		t.Errorf("crowded: greedy %t, modest %t", s.crowded("greedy"), s.crowded("modest"))
	}
	// Whoever comes later begins at once, although a hundred wait that are older.
	for i := range limit - each {
		if name := fmt.Sprintf("modest-%d", i); !begin(name, "web", 1000) {
			t.Errorf("%s waits for the greedy namespace", name)
		}
	}
	// All places are taken. The next one is that of the namespace with the fewest, not of the oldest.
	if begin("late", "web", 2000) {
		t.Error("a ninth begins")
	}
	s.leave(of("greedy", "0"))
	if begin("greedy", "2", 2) {
		t.Error("the greedy namespace takes the place that another one waits for")
	}
	if !begin("late", "web", 2000) {
		t.Error("the namespace without any does not begin")
	}
	s.leave(of("late", "web"))
	if !begin("greedy", "2", 2) {
		t.Error("the greedy namespace does not begin when no other waits")
	}
}

// TestSeveralNamespacesTakeTurns has two namespaces with many transfers, and two places: the one with fewer in progress has the next.
func TestSeveralNamespacesTakeTurns(t *testing.T) {
	s := newSlots(2)
	next := map[string]int{}
	var begun []place
	try := func(namespace string) bool {
		t.Helper()
		p := of(namespace, fmt.Sprint(next[namespace]))
		begins, err := s.take(t.Context(), p, time.Unix(int64(next[namespace]), 0))
		if err != nil {
			t.Fatal(err)
		}
		if begins {
			begun = append(begun, p)
			next[namespace]++
		}
		return begins
	}
	for i, begins := range []bool{true, true, false} {
		if try("a") != begins {
			t.Fatalf("attempt %d of the namespace that is alone", i)
		}
	}
	if try("b") {
		t.Fatal("a third begins")
	}
	for i, turn := range []string{"b", "a", "b", "a"} {
		s.leave(begun[i])
		if other := begun[i+1].Namespace; other == turn || try(other) || !try(turn) {
			t.Fatalf("turn %d is not that of %s", i, turn)
		}
		if try("a") || try("b") {
			t.Fatalf("a third begins in turn %d", i)
		}
	}
}
