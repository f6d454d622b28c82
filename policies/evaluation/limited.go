package evaluation

import (
	"context"
	"sync"
	"time"
)

// limited is a context with an earlier deadline. A request can have a hundred of them,
// and the engine checks the time itself, so the timer that closes Done is created only
// on the first call of Done.
type limited struct {
	context.Context
	deadline time.Time

	lock   sync.Mutex
	timed  context.Context
	cancel context.CancelFunc
}

// Deadline implements context.Context.
func (l *limited) Deadline() (time.Time, bool) {
	if earlier, ok := l.Context.Deadline(); ok && earlier.Before(l.deadline) {
		return earlier, true
	}
	return l.deadline, true
}

// Done implements context.Context.
func (l *limited) Done() <-chan struct{} {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.timed == nil {
		l.timed, l.cancel = context.WithDeadline(l.Context, l.deadline)
	}
	return l.timed.Done()
}

// Err implements context.Context.
func (l *limited) Err() error {
	l.lock.Lock()
	timed := l.timed
	l.lock.Unlock()
	if timed != nil {
		return timed.Err()
	}
	if err := l.Context.Err(); err != nil {
		return err
	}
	if !time.Now().Before(l.deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// end frees the timer. If Done was called, this cancels the context.
func (l *limited) end() {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.cancel != nil {
		l.cancel()
	}
}
