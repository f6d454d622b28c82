package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/transfer"
)

// session is one reconciliation of an import or export.
type session struct {
	*runner
	owner owner
	// who are the secrets of its movers.
	who *identity
	// direction is the value of labels of metrics.
	direction string
	place     place
	// object is being changed, and before is how it is stored.
	object, before client.Object
	phase          *v1beta1.TransferPhase
	// since is when it began to wait for others.
	since time.Time
	// waiting writes to the status what is being done or waited for, instead of the conditions Progressing and Ready. Optional.
	waiting    func(reason, message string)
	conditions *[]metav1.Condition
}

// newSession returns a session for an object whose phase and conditions are these. Names are those of its Service.
func (r *runner) newSession(ctx context.Context, direction, kind string, object client.Object, phase *v1beta1.TransferPhase, conditions *[]metav1.Condition, names func(owner) []string) (*session, error) {
	before, _ := object.DeepCopyObject().(client.Object)
	s := &session{
		runner: r, direction: direction, object: object, before: before, phase: phase, conditions: conditions, since: object.GetCreationTimestamp().Time,
		owner: owner{kind, object.GetNamespace(), object.GetName(), object.GetUID()},
	}
	s.place = place{direction, client.ObjectKeyFromObject(object)}
	var err error
	s.who, err = r.keys.identify(ctx, object.GetUID(), object.GetCreationTimestamp().Time, names(s.owner))
	return s, err
}

// ended reports whether nothing is left to do.
func ended(phase v1beta1.TransferPhase) bool {
	return phase == v1beta1.TransferSucceeded || phase == v1beta1.TransferFailed || phase == v1beta1.TransferExpired
}

// drive performs a step and writes the status. A step returns when to look again. A permanent error ends the session: clean deletes what exists.
func (s *session) drive(ctx context.Context, step func(context.Context) (time.Duration, error), clean func(context.Context) error) (reconcile.Result, error) {
	again, err := step(ctx)
	var permanent *permanentError
	switch {
	case errors.As(err, &permanent):
		again, err = 0, s.fail(ctx, permanent.reason, permanent.message, clean)
	case apierrors.IsConflict(err):
		// An object has changed since it was read.
		return reconcile.Result{RequeueAfter: time.Second}, nil
	case lasting(err):
		again, err = 0, s.fail(ctx, v1beta1.ReasonFailed, err.Error(), clean)
	case err != nil:
		s.progressing(*s.phase, v1beta1.ReasonRetrying, err.Error())
	}
	if err := errors.Join(err, s.write(ctx)); err != nil {
		return reconcile.Result{}, err
	}
	if *s.phase != v1beta1.TransferPending && !occupies(*s.phase) {
		s.slots.leave(s.place)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// queued reports whether a transfer has to wait until others have ended, and writes that to the status.
func (s *session) queued(ctx context.Context) (bool, error) {
	begins, err := s.slots.take(ctx, s.place, s.since)
	if err != nil || begins {
		return false, err
	}
	if s.slots.crowded(s.place.Namespace) {
		s.progressing(v1beta1.TransferPending, ReasonQueued, fmt.Sprintf("waiting until others of the namespace have ended: %d imports, exports and examinations of captures are in progress in it, which is the limit of one namespace", s.slots.perNamespace))
		return true, nil
	}
	s.progressing(v1beta1.TransferPending, ReasonQueued, fmt.Sprintf("waiting until others have ended: %d imports, exports and examinations of captures are in progress, which is the limit", s.slots.limit))
	return true, nil
}

// fail ends the session without success.
func (s *session) fail(ctx context.Context, reason, message string, clean func(context.Context) error) error {
	if err := clean(ctx); err != nil {
		return err
	}
	s.end(v1beta1.TransferFailed, metav1.ConditionFalse, reason, message)
	s.event(corev1.EventTypeWarning, "TransferFailed", message)
	s.metrics.ended(s.direction, resultFailed, reason, s.clock.Since(s.object.GetCreationTimestamp().Time), 0)
	return nil
}

// succeed ends the session with success.
func (s *session) succeed(phase v1beta1.TransferPhase, message string, bytes int64) {
	s.end(phase, metav1.ConditionTrue, v1beta1.ReasonReconciled, message)
	s.event(corev1.EventTypeNormal, "Transferred", message)
	s.metrics.ended(s.direction, resultReady, v1beta1.ReasonReconciled, s.clock.Since(s.object.GetCreationTimestamp().Time), bytes)
}

// progressing writes to the status what is being done or waited for.
func (s *session) progressing(phase v1beta1.TransferPhase, reason, message string) {
	*s.phase = phase
	if s.waiting != nil {
		s.waiting(reason, message)
		return
	}
	s.set(metav1.ConditionTrue, metav1.ConditionFalse, reason, message)
}

// end writes to the status that nothing more is done.
func (s *session) end(phase v1beta1.TransferPhase, ready metav1.ConditionStatus, reason, message string) {
	*s.phase = phase
	s.set(metav1.ConditionFalse, ready, reason, message)
}

// set sets the conditions Progressing and Ready.
func (s *session) set(progressing, ready metav1.ConditionStatus, reason, message string) {
	for kind, status := range map[string]metav1.ConditionStatus{v1beta1.ConditionProgressing: progressing, v1beta1.ConditionReady: ready} {
		meta.SetStatusCondition(s.conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: excerpt.Of(message, maximumMessage),
			ObservedGeneration: s.object.GetGeneration(), LastTransitionTime: metav1.NewTime(s.clock.Now()),
		})
	}
	slices.SortFunc(*s.conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
}

func (s *session) event(kind, reason, message string) {
	if s.recorder == nil {
		return
	}
	about := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: s.owner.namespace, Name: s.owner.name, UID: s.owner.uid}}
	about.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(s.owner.kind))
	s.recorder.Eventf(about, nil, kind, reason, "Transfer", "%s", excerpt.Of(message, maximumMessage))
}

// write writes the status, if it differs.
func (s *session) write(ctx context.Context) error {
	if equality.Semantic.DeepEqual(s.before, s.object) {
		return nil
	}
	if err := s.manager.Status().Patch(ctx, s.object, client.MergeFromWithOptions(s.before, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(err)
	}
	s.before, _ = s.object.DeepCopyObject().(client.Object)
	return nil
}

// finished reports whether a mover has succeeded. Otherwise it writes the progress; a mover that has failed, and may succeed later, is started again.
func (s *session) finished(ctx context.Context, seen *observed, phase v1beta1.TransferPhase, doing string) bool {
	switch {
	case seen.state == nil && phase == v1beta1.TransferTransferring:
		s.progressing(v1beta1.TransferPreparing, v1beta1.ReasonReconciling, seen.waiting)
	case seen.state == nil:
		s.progressing(phase, v1beta1.ReasonReconciling, seen.waiting)
	case seen.state.Phase == transfer.Succeeded:
		return true
	case seen.state.Phase == transfer.Failed && seen.state.Failure != nil:
		s.progressing(phase, v1beta1.ReasonRetrying, "the mover starts again: "+excerpt.Of(seen.state.Failure.Message, maximumMessage))
		_ = s.movers.acknowledge(ctx, s.who, seen.ip)
	default:
		s.progressing(phase, v1beta1.ReasonReconciling, doing)
	}
	return false
}

// release lets a mover that has ended exit, and deletes its Job. A mover that cannot be reached exits by itself.
func (s *session) release(ctx context.Context, jobName, ip string) error {
	if ip != "" {
		_ = s.movers.acknowledge(ctx, s.who, ip)
	}
	return s.deleteJob(ctx, s.owner, jobName)
}
