package evaluation

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrQuarantined is what Evaluation.Err wraps under ResultQuarantined.
var ErrQuarantined = errors.New("it is quarantined")

// PanicError is the Evaluation.Err of a policy that panicked. Its text omits the value, which could contain
// data that the user must not see.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return "it failed inside the policy engine (panic)" }

// timeoutError describes which deadline was exceeded. It wraps context.DeadlineExceeded.
type timeoutError struct{ message string }

func (e *timeoutError) Error() string { return e.message }

func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }

func errPolicyTimeout(limit time.Duration) error {
	return &timeoutError{fmt.Sprintf("it did not end within %v", limit)}
}

// noResultError returns the reason why a policy has no result if its request ended first, or no worker is
// left to evaluate it.
func noResultError(ctx context.Context) error {
	if ctx.Err() == nil {
		return &timeoutError{"too many evaluations have not ended although their time is over"}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &timeoutError{"the time for all policies of the request ran out before it ended"}
	}
	return fmt.Errorf("the request was given up: %w", ctx.Err())
}

func errQuarantined(q *Quarantine) error {
	switch {
	case q == nil: // the quarantine has ended meanwhile
		return ErrQuarantined
	case q.Stuck > 0:
		return fmt.Errorf("%w because an evaluation does not end", ErrQuarantined)
	default:
		return fmt.Errorf("%w until %s because its evaluations repeatedly took too long", ErrQuarantined, q.Until.UTC().Format(time.RFC3339))
	}
}
