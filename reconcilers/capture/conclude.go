package capture

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

const (
	// concludeInterval is the delay after a conflict, and concludeAttempts is the maximum number of conflicts.
	concludeInterval = 200 * time.Millisecond
	concludeAttempts = 50
)

// Concluded is the result of Conclude.
type Concluded string

// Results of Conclude.
const (
	// Untouched is a request that had ended, with nothing left to clean up, or that does not exist.
	Untouched Concluded = ""
	// Cleaned is a request that had ended or was being deleted, and whose objects and finalizer are gone.
	Cleaned Concluded = "cleaned"
	// Finished is a request whose template had been created, and that is ready now.
	Finished Concluded = "finished"
	// Ended is a request without a template, which has failed for the given reason.
	Ended Concluded = "ended"
)

// Conclude has a request end at once, so that no reconciler is needed for it any more: a request whose template exists is finished, which waits for
// no other controller. Any other fails for the reason, with the message. What it has created is deleted, and its finalizer is removed.
//
// It can be interrupted and repeated. No other process may reconcile requests meanwhile.
func (r *Reconciler) Conclude(ctx context.Context, request types.NamespacedName, reason, message string) (Concluded, error) {
	result := Untouched
	for conflicts := 0; ; {
		s, err := r.gather(ctx, request)
		if err != nil {
			return result, err
		}
		if s == nil || IsConcluded(s.request) {
			return result, nil
		}
		var next action
		next, result = conclusion(s, result, reason, message)
		switch err := r.apply(ctx, s, next); {
		case err == nil:
			continue
		case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err), conflicts == concludeAttempts:
			return result, fmt.Errorf("could not %s: %w", next.step, err)
		}
		// An object has changed or was deleted since it was read.
		conflicts++
		select {
		case <-ctx.Done():
			return result, ctx.Err()
		case <-time.After(concludeInterval):
		}
	}
}

// IsConcluded reports whether a request needs no reconciler any more: it has ended or is being deleted, and nothing has to be cleaned up.
func IsConcluded(request *v1beta1.VirtualMachineTemplateRequest) bool {
	ended := (&state{request: request}).ended() || request.DeletionTimestamp != nil
	return ended && !slices.Contains(request.Finalizers, v1beta1.FinalizerSnapshotCleanup)
}

// conclusion returns the next action of Conclude, and its result so far.
func conclusion(s *state, result Concluded, reason, message string) (action, Concluded) {
	next := decide(s)
	switch {
	case s.ended() || s.request.DeletionTimestamp != nil:
		if result == Untouched {
			result = Cleaned
		}
		return next, result
	case next.step == wait, s.template == nil, !s.underConstruction() && !s.linked():
		return *failure(reason, "%s", message), Ended
	case next.step == fail:
		return next, Ended
	}
	return next, Finished
}
