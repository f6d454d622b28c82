package capture

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/powers"
)

const (
	controllerName = "capture"
	fieldManager   = "stencil-capture"

	// atOnce is the delay until the next reconciliation after an action.
	atOnce = time.Millisecond
)

// Options are the dependencies of a Reconciler.
type Options struct {
	// Cluster reads and writes the objects of captures.
	Cluster *Cluster
	// Recorder receives events about requests and VirtualMachines. Optional.
	Recorder events.EventRecorder
	// Registerer receives the metrics.
	Registerer prometheus.Registerer
	// Instancetype of requests without one; Keep if empty. With Keep, names of cluster-wide instance types and preferences are retained
	// and the name of the instance type is a parameter; others are expanded.
	Instancetype v1beta1.CaptureInstancetype
	// Permissions checks what the creators of requests may do, each time before something is created for them. Without it nothing is created.
	Permissions powers.Actions
	// StrictSource requires of them for a VirtualMachine of the namespace of the request what a copy by hand takes; see policy template-request.
	StrictSource bool
	// Clock is for deadlines and the times of conditions. Default: the real clock.
	Clock clock.PassiveClock
}

// Reconciler reconciles VirtualMachineTemplateRequests.
type Reconciler struct {
	gatherer
	recorder     events.EventRecorder
	metrics      *metrics
	instancetype v1beta1.CaptureInstancetype
	permissions  powers.Actions
	strictSource bool
}

// New returns a Reconciler. It fails if the metrics are already registered.
func New(options Options) (*Reconciler, error) {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	m, err := newMetrics(options.Registerer)
	if err != nil {
		return nil, err
	}
	return &Reconciler{gatherer{options.Cluster, options.Clock}, options.Recorder, m, options.Instancetype, options.Permissions, options.StrictSource}, nil
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
		// An object has changed since it was read: gather again.
		return reconcile.Result{RequeueAfter: shortestWait}, nil
	case s.ended() || s.request.DeletionTimestamp != nil:
		return reconcile.Result{}, err
	default:
		return reconcile.Result{}, errors.Join(err, r.reportError(ctx, s, next, err))
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

// permanentError is an error that retries cannot resolve.
type permanentError struct {
	reason string
	cause  error
}

func (e *permanentError) Error() string { return e.cause.Error() }
func (e *permanentError) Unwrap() error { return e.cause }

// permanent reports whether retries cannot help. Forbidden is not permanent: permissions and quotas may change meanwhile.
func permanent(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		apierrors.HasStatusCause(err, namespaceTerminating)
}

// reportError ends the request if the error is permanent; otherwise it writes to the conditions why the step is retried. It returns an error
// if that fails.
func (r *Reconciler) reportError(ctx context.Context, s *state, next action, failure error) error {
	var lasting *permanentError
	var unknown *unknownKindError
	switch {
	case errors.As(failure, &lasting):
		return r.end(ctx, s, lasting.reason, failure.Error())
	case errors.As(failure, &unknown):
		return r.progressing(ctx, s, v1beta1.ReasonWaitingForAPI, fmt.Sprintf("waiting until the API server serves %s", unknown.resource))
	case permanent(failure):
		return r.end(ctx, s, v1beta1.ReasonCaptureRefused, failure.Error())
	default:
		return r.progressing(ctx, s, v1beta1.ReasonRetrying, couldNot(next.step)+failure.Error())
	}
}

// apply writes the conditions of an action, and then performs it.
func (r *Reconciler) apply(ctx context.Context, s *state, next action) error {
	switch next.step {
	case fail:
		return r.end(ctx, s, next.reason, next.message)
	case finish:
		return r.finish(ctx, s)
	case recordSnapshot:
		return r.recordSnapshot(ctx, s, next)
	case createTemplate:
		// createTemplate writes the conditions itself, together with what it found.
		return r.createTemplate(ctx, s, next)
	}
	if next.reason != "" && !s.retrying(next.step) {
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

// authorized checks what the policy template-request has checked when the request was created, which can be as long ago as its timeout.
func (r *Reconciler) authorized(ctx context.Context, request *v1beta1.VirtualMachineTemplateRequest) error {
	if r.permissions == nil {
		return errNoPermissions
	}
	namespace, elsewhere := request.Namespace, request.Spec.VirtualMachineRef.Namespace != request.Namespace
	var actions []permission.Action
	if elsewhere || r.strictSource {
		actions = append(actions, permission.Capture(request))
	}
	if !elsewhere && r.strictSource {
		actions = append(actions, permission.Action{Verb: permission.Create, Group: snapshots.Group, Version: snapshots.Version, Resource: snapshots.Resource, Namespace: namespace})
	}
	lacks, err := powers.Lacks(ctx, r.permissions, request, append(actions, permission.CreateDataVolumes(namespace), permission.CreateTemplates(namespace))...)
	if err == nil && lacks != "" {
		err = &permanentError{v1beta1.ReasonNotPermitted, errors.New(lacks + ": create the request again when that is permitted")}
	}
	return err
}

// errNoPermissions is for a Reconciler that only concludes requests.
var errNoPermissions = errors.New("this process creates nothing for requests")

func finalizers(list []string) map[string]any {
	return map[string]any{"metadata": map[string]any{"finalizers": list}}
}

func owners(list []any) map[string]any {
	return map[string]any{"metadata": map[string]any{"ownerReferences": list}}
}

// writeStatus writes conditions and more fields of the status, unless nothing differs, and then reads the request again.
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
	// Subsequent changes apply to the current version of the request.
	current := &v1beta1.VirtualMachineTemplateRequest{}
	found, err := r.cluster.read(ctx, requests, s.request.Namespace, s.request.Name, current)
	switch {
	case err != nil:
		return err
	case !found || current.UID != s.request.UID || current.DeletionTimestamp != nil && s.request.DeletionTimestamp == nil:
		return apierrors.NewConflict(requests.GroupResource(), s.request.Name, errors.New("the request was deleted in the meantime"))
	}
	s.request = current
	return nil
}

// progressing writes what is being done or waited for.
func (r *Reconciler) progressing(ctx context.Context, s *state, reason, message string) error {
	c := conditionsOf(s)
	c.progressing(reason, message)
	return r.writeStatus(ctx, s, c, nil)
}

// namespaceTerminating is the cause with which the API server denies creation in a namespace that is being deleted.
const namespaceTerminating metav1.CauseType = "NamespaceTerminating"
