package capture

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

const (
	controllerName = "capture"
	fieldManager   = "stencil-capture"

	// atOnce looks again after an action.
	atOnce = time.Millisecond
)

// Options are what a Reconciler needs.
type Options struct {
	// Cluster reads and writes what captures deal with.
	Cluster *Cluster
	// Recorder receives events about requests and VirtualMachines.
	Recorder events.EventRecorder
	// Registerer takes the metrics.
	Registerer prometheus.Registerer
	// Clock says when deadlines are over and conditions change. Default: the real one.
	Clock clock.PassiveClock
}

// Reconciler brings requests to their end.
type Reconciler struct {
	gatherer
	recorder events.EventRecorder
	metrics  *metrics
}

// New returns a Reconciler. It fails when the metrics are registered already.
func New(options Options) (*Reconciler, error) {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	m, err := newMetrics(options.Registerer)
	if err != nil {
		return nil, err
	}
	return &Reconciler{gatherer{options.Cluster, options.Clock}, options.Recorder, m}, nil
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s, err := r.gather(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	next := decide(s)
	logf.FromContext(ctx).V(1).Info("decided", "step", next.step, "reason", next.reason)
	err = r.apply(ctx, s, next)
	switch {
	case err == nil:
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		// Something has changed since it was read: look again.
		return reconcile.Result{RequeueAfter: lookSoon}, nil
	case s.ended() || s.request.DeletionTimestamp != nil:
		return reconcile.Result{}, err
	default:
		return reconcile.Result{}, errors.Join(err, r.tellTrouble(ctx, s, next, err))
	}
	switch {
	case next.again > 0:
		return reconcile.Result{RequeueAfter: next.again}, nil
	case next.step == doNothing, next.step == deleteRequest:
		return reconcile.Result{}, nil
	default:
		return reconcile.Result{RequeueAfter: atOnce}, nil
	}
}

// refusedError says that what was to be made is refused for good.
type refusedError struct {
	reason string
	cause  error
}

func (e *refusedError) Error() string { return e.cause.Error() }
func (e *refusedError) Unwrap() error { return e.cause }

// permanent says whether trying again cannot help. Forbidden is not permanent: rights and quotas are given while one waits.
func permanent(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		apierrors.HasStatusCause(err, namespaceTerminating)
}

// tellTrouble ends the request when there is no hope, and tells why it is tried again otherwise. It returns nil, or why it could not.
func (r *Reconciler) tellTrouble(ctx context.Context, s *state, next action, trouble error) error {
	var refused *refusedError
	var unknown *unknownKindError
	switch {
	case errors.As(trouble, &refused):
		return r.end(ctx, s, refused.reason, trouble.Error())
	case errors.As(trouble, &unknown):
		return r.progressing(ctx, s, v1beta1.ReasonWaitingForAPI, fmt.Sprintf("waiting until the API server serves %s", unknown.resource))
	case permanent(trouble):
		return r.end(ctx, s, v1beta1.ReasonCaptureRefused, trouble.Error())
	default:
		return r.progressing(ctx, s, v1beta1.ReasonRetrying, fmt.Sprintf("%s: %v", failing(next.step), trouble))
	}
}

// failing is how the message begins that tells of trouble with a step.
func failing(step step) string { return fmt.Sprintf("could not %s, and tries again", step) }

// retried says whether the request tells of trouble with this action. It goes on to do so until the action is done: each change of the
// status would have the request looked at again at once, and no growing interval would ever be waited for.
func (s *state) retried(next action) bool {
	told := meta.FindStatusCondition(s.request.Status.Conditions, v1beta1.ConditionProgressing)
	return told != nil && told.Reason == v1beta1.ReasonRetrying && strings.HasPrefix(told.Message, failing(next.step))
}

// apply does what was decided, after telling of it.
func (r *Reconciler) apply(ctx context.Context, s *state, next action) error {
	switch next.step {
	case fail:
		return r.end(ctx, s, next.reason, next.message)
	case finish:
		return r.finish(ctx, s)
	case recordSnapshot:
		return r.recordSnapshot(ctx, s, next)
	case createTemplate:
		// Tells of itself, together with what it has found.
		return r.createTemplate(ctx, s, next)
	}
	if next.reason != "" && !s.retried(next) {
		if err := r.progressing(ctx, s, next.reason, next.message); err != nil {
			return err
		}
	}
	switch next.step {
	case addFinalizer:
		return r.cluster.patch(ctx, requests, s.request, finalizers(append(s.request.Finalizers, v1beta1.FinalizerSnapshotCleanup)))
	case removeFinalizer:
		return r.removeFinalizer(ctx, s)
	case createSnapshot:
		return r.createSnapshot(ctx, s)
	case createDataVolumes:
		return r.createDataVolumes(ctx, s)
	case linkRequest:
		owner := ownerReference(templates, s.template.Name, s.template.UID)
		return r.cluster.patch(ctx, requests, s.request, owners(append(without(s.request, s.template.UID), owner)))
	case unlinkRequest:
		return r.cluster.patch(ctx, requests, s.request, owners(without(s.request, s.link().UID)))
	case releaseTemplate:
		return r.cluster.patch(ctx, templates, s.template, owners(without(s.template, s.uid())))
	case handOver:
		return r.handOver(ctx, s)
	case deleteSnapshot:
		return r.cluster.delete(ctx, snapshots, s.snapshot)
	case deleteTemplate:
		return r.cluster.delete(ctx, templates, s.template)
	case deleteDataVolumes:
		return r.deleteDataVolumes(ctx, s)
	case deleteRequest:
		return r.cluster.delete(ctx, requests, s.request)
	}
	return nil
}

func finalizers(list []string) map[string]any {
	return map[string]any{"metadata": map[string]any{"finalizers": list}}
}

func owners(list []any) map[string]any {
	return map[string]any{"metadata": map[string]any{"ownerReferences": list}}
}

// writeStatus writes conditions and the snapshot, where they differ from what the request says, and reads the request as it is then.
func (r *Reconciler) writeStatus(ctx context.Context, s *state, c *conditions, more map[string]any) error {
	if !c.differ(s) && len(more) == 0 {
		return nil
	}
	status := map[string]any{"conditions": c.list}
	for key, value := range more {
		status[key] = value
	}
	if err := r.cluster.patch(ctx, requests, s.request, map[string]any{"status": status}, "status"); err != nil {
		return err
	}
	// What follows changes the request as it is now.
	written := &v1beta1.VirtualMachineTemplateRequest{}
	found, err := r.cluster.read(ctx, requests, s.request.Namespace, s.request.Name, written)
	switch {
	case err != nil:
		return err
	case !found || written.UID != s.request.UID || written.DeletionTimestamp != nil && s.request.DeletionTimestamp == nil:
		return apierrors.NewConflict(requests.GroupResource(), s.request.Name, errors.New("the request was deleted meanwhile"))
	}
	s.request = written
	return nil
}

// progressing tells what is done or waited for.
func (r *Reconciler) progressing(ctx context.Context, s *state, reason, message string) error {
	c := conditionsOf(s)
	c.progressing(reason, message)
	return r.writeStatus(ctx, s, c, nil)
}

// namespaceTerminating is the cause with which the API server refuses to create something in a namespace that is being deleted.
const namespaceTerminating metav1.CauseType = "NamespaceTerminating"
