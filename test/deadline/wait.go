package deadline

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// sampleInterval is how often the load is read.
	sampleInterval = 100 * time.Millisecond
	// pollInterval is the shortest pause between two checks of Wait.
	pollInterval = 50 * time.Millisecond
	// longPause is the longest pause after a cheap check: many waits beside each other kept the processors busy by checks.
	longPause = time.Second
)

// pause returns the time between two checks of Wait. Many checks run kubectl, which takes a third of a second of processor time: without a pause that
// grows, whatever waits would keep a core from what it waits for. It adds at most a quarter to a wait.
func pause(waited, check time.Duration) time.Duration {
	return max(pollInterval, min(waited/4, 3*check), min(waited/8, 12*check, longPause))
}

// ExceededError is the error of a wait that has used up its budget.
type ExceededError struct {
	// What describes the condition that was waited for.
	What string
	// Limit is the budget, and Waited the time that the wait took.
	Limit, Waited time.Duration
	// Last is the last error of the check, nil when there was none.
	Last error
}

func (e *ExceededError) Error() string {
	text := fmt.Sprintf("waiting until %s: not within %s", e.What, e.Limit)
	if e.Waited > e.Limit+e.Limit/10 {
		text += fmt.Sprintf(", stretched to %s because the machine was overloaded", e.Waited.Round(time.Second/10))
	}
	if e.Last != nil {
		text += fmt.Sprintf("; last: %v", e.Last)
	}
	return text
}

// Unwrap makes it a context.DeadlineExceeded, for callers that distinguish timeouts from other failures.
func (e *ExceededError) Unwrap() []error {
	if e.Last == nil {
		return []error{context.DeadlineExceeded}
	}
	return []error{context.DeadlineExceeded, e.Last}
}

// WithTimeout returns a context that ends when the budget is spent; context.Cause is an *ExceededError then. The parameter what completes the
// sentence "waiting until …".
func WithTimeout(ctx context.Context, what string, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go watch(ctx, cancel, what, limit)
	return ctx, func() { cancel(context.Canceled) }
}

// watch charges the elapsed time until the context ends or the budget is spent.
func watch(ctx context.Context, cancel context.CancelCauseFunc, what string, limit time.Duration) {
	tick := time.NewTicker(min(sampleInterval, max(limit/10, time.Millisecond)))
	defer tick.Stop()
	budget, last := NewBudget(limit), time.Now()
	for !budget.Exceeded() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		budget.Charge(now.Sub(last), HostLoad())
		last = now
	}
	cancel(&ExceededError{What: what, Limit: limit, Waited: budget.Waited()})
}

// Wait calls complaint immediately and then repeatedly, until it returns nil. It fails with an *ExceededError when the budget is spent, and with the
// cause of the context when that ends first; both have the last error. The parameter what completes the sentence "waiting until …". The context of
// complaint ends with the wait.
func Wait(ctx context.Context, what string, limit time.Duration, complaint func(context.Context) error) error {
	ctx, cancel := WithTimeout(ctx, what, limit)
	defer cancel()
	started := time.Now()
	var last error
	for {
		began := time.Now()
		err := complaint(ctx)
		if err == nil {
			return nil
		}
		// An error caused by the end of the check's own context does not replace a more informative one.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return Failed(ctx, what, last)
		case <-time.After(pause(time.Since(started), time.Since(began))):
		}
	}
}

// Failed returns the error of a wait after its context has ended, with the last error of the check. It is for loops that do more than Wait does.
func Failed(ctx context.Context, what string, last error) error {
	var exceeded *ExceededError
	if errors.As(context.Cause(ctx), &exceeded) {
		failed := *exceeded
		failed.Last = last
		return &failed
	}
	return fmt.Errorf("waiting until %s: %w; last: %w", what, context.Cause(ctx), last)
}
