package server

import (
	"runtime"
	"testing"
	"time"
)

func TestPercentFor(t *testing.T) {
	for live, want := range map[uint64]int{0: 800, 1 << 20: 800, 16 << 20: 200, 32 << 20: 100, 40 << 20: 60, 48 << 20: 40, 64 << 20: 40, 1 << 40: 40} {
		if got := percentFor(live); got != want {
			t.Errorf("%d bytes alive: %d %%, want %d", live, got, want)
		}
	}
}

func TestOnEachGC(t *testing.T) {
	called := make(chan struct{}, 100)
	onEachGC(func() {
		select {
		case called <- struct{}{}:
		default:
		}
	})
	<-called // at once
	for range 3 {
		runtime.GC()
		select {
		case <-called:
		case <-time.After(time.Minute):
			t.Fatal("a collection went by unnoticed")
		}
	}
}
