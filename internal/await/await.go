// Package await waits for changes of shared state, such as an object that arrives in a watch cache.
package await

import (
	"context"
	"sync"
	"time"
)

// Signal reports changes to any number of goroutines. The zero value can be used. All methods are safe for concurrent use.
type Signal struct {
	mutex sync.Mutex
	// changed is closed by the next Send; nil while no goroutine waits.
	changed chan struct{}
}

// Changed returns a channel that is closed by the next Send. To miss no change, call it before reading the state.
func (s *Signal) Changed() <-chan struct{} {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// Send closes the channel that Changed has returned.
func (s *Signal) Send() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Until returns true as soon as the condition holds, and false when the timeout or ctx ends first. It evaluates the condition
// at once, and again after each signal.
func Until(ctx context.Context, timeout time.Duration, signal *Signal, condition func() bool) bool {
	if condition() {
		return true
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		changed := signal.Changed()
		if condition() {
			return true
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
