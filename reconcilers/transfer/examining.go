package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/internal/excerpt"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/transfer"
)

const (
	// examineTimeout is how long an examination may take, without the time that it waits for other transfers.
	examineTimeout = time.Hour
	// examineDelay is how long after its success a capture is still examined. Older ones are from the time before captures were examined.
	examineDelay = time.Hour
	// capturedGeneration is the generation of a template as a capture creates it.
	capturedGeneration = 1
)

// Captures has the disks of templates examined that VirtualMachineTemplateRequests have created. The result is the condition Sealed of request and template.
// Everything that an examination needs is owned by the request, which the template owns, so that it is gone with either.
type Captures struct{ *runner }

// examining is the examination of one capture at one moment. Its state is the reason of the condition Sealed: Queued, Examining, Examined (what the examination
// needed is being deleted), and those that a report has.
type examining struct {
	*session
	object *v1beta1.VirtualMachineTemplateRequest
}

// due is what has to be done for a request.
type due string

const (
	nothing     due = "nothing"
	examination due = "the examination"
	reason      due = "the reason"
)

// dueOf returns what has to be done for a request. Examinations that have begun come to an end also if captures are not examined any more.
func dueOf(object *v1beta1.VirtualMachineTemplateRequest, enabled bool, now time.Time) due {
	conditions := object.Status.Conditions
	sealed := meta.FindStatusCondition(conditions, v1beta1.ConditionSealed)
	switch {
	case object.DeletionTimestamp != nil:
		return nothing
	case sealed == nil:
		ready := meta.FindStatusCondition(conditions, v1beta1.ConditionReady)
		captured := ready != nil && ready.Status == metav1.ConditionTrue && object.Status.TemplateRef != nil && !slices.Contains(object.Finalizers, v1beta1.FinalizerSnapshotCleanup)
		if enabled && captured && now.Sub(ready.LastTransitionTime.Time) < examineDelay {
			return examination
		}
		return nothing
	case examines(sealed.Reason):
		return examination
	case acknowledgementChanged(object, conditions):
		return reason
	}
	return nothing
}

// examines reports whether an examination with this reason has not ended.
func examines(reason string) bool {
	return reason == ReasonQueued || reason == v1beta1.ReasonExamining || reason == v1beta1.ReasonExamined
}

// Reconcile implements reconcile.Reconciler.
func (r *Captures) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &v1beta1.VirtualMachineTemplateRequest{}
	found, err := get(ctx, r.manager, request.Namespace, request.Name, object)
	if err != nil {
		return reconcile.Result{}, err
	}
	next := nothing
	if found {
		next = dueOf(object, r.settings.ExamineCaptures, r.clock.Now())
	}
	if next == nothing {
		r.slots.leave(place{directionCapture, request.NamespacedName})
		return reconcile.Result{}, nil
	}
	phase := v1beta1.TransferPreparing
	s, err := r.newSession(ctx, directionCapture, "VirtualMachineTemplateRequest", object, &phase, &object.Status.Conditions, func(owner) []string { return nil })
	if err != nil {
		return reconcile.Result{}, err
	}
	e := &examining{s, object}
	if next == reason {
		return reconcile.Result{}, e.acknowledge(ctx, object.Status.TemplateRef.Name)
	}
	s.waiting, s.since = e.waits, r.clock.Now()
	if c := e.condition(); c != nil {
		s.since = c.LastTransitionTime.Time
	}
	return s.drive(ctx, e.step, func(context.Context) error { return nil })
}

func (e *examining) condition() *metav1.Condition {
	return meta.FindStatusCondition(e.object.Status.Conditions, v1beta1.ConditionSealed)
}

// waits writes to the condition what is being done or waited for. Its last transition is when the examination began.
func (e *examining) waits(reason, message string) {
	if reason != ReasonQueued {
		reason = v1beta1.ReasonExamining
	}
	before := e.condition()
	begins := before == nil || before.Reason == ReasonQueued && reason != ReasonQueued
	e.setSealed(metav1.Condition{Type: v1beta1.ConditionSealed, Status: metav1.ConditionUnknown, Reason: reason, Message: excerpt.Of(message, maximumMessage)})
	if begins {
		e.condition().LastTransitionTime = metav1.NewTime(e.clock.Now())
	}
}

// step does what is next. An error that retries cannot resolve ends the examination: the condition is Unknown, and has its message.
func (e *examining) step(ctx context.Context) (time.Duration, error) {
	c := e.condition()
	if c == nil {
		e.progressing(v1beta1.TransferPending, v1beta1.ReasonExamining, "the examination of the disks begins")
		return time.Millisecond, nil
	}
	if c.Reason == v1beta1.ReasonExamined {
		return 0, e.conclude(ctx, *c)
	}
	again, err := e.examine(ctx, c)
	var permanent *permanentError
	if errors.As(err, &permanent) || lasting(err) {
		e.examined(metav1.Condition{Type: v1beta1.ConditionSealed, Status: metav1.ConditionUnknown, Message: excerpt.Of("the disks were not examined: "+err.Error(), maximumMessage)})
		return time.Millisecond, nil
	}
	return again, err
}

// examine has the disks copied and examined.
func (e *examining) examine(ctx context.Context, c *metav1.Condition) (time.Duration, error) {
	switch {
	case !e.settings.ExamineCaptures:
		return 0, &permanentError{transfer.ReasonInterrupted, "the disks of captures are not examined any more"}
	case c.Reason == v1beta1.ReasonExamining && e.clock.Since(c.LastTransitionTime.Time) > examineTimeout:
		return 0, &permanentError{transfer.ReasonTimedOut, fmt.Sprintf("the examination has not finished within %s; the last that was known: %s", examineTimeout, c.Message)}
	}
	seen, err := e.observe(ctx, e.owner, e.owner.called(""), e.who)
	if err != nil {
		return 0, err
	}
	if seen.missing {
		if queued, err := e.queued(ctx); queued || err != nil {
			return queueInterval, err
		}
		return pollInterval, e.begin(ctx)
	}
	if err := failure(seen.state); err != nil {
		return 0, err
	}
	if !e.finished(ctx, seen, v1beta1.TransferTransferring, "examining the disks") {
		return pollInterval, nil
	}
	if seen.state.Seal == nil {
		return 0, &permanentError{transfer.ReasonMoverFailed, "the mover reports nothing"}
	}
	e.examined(sealCondition(seen.state.Seal, false))
	return time.Millisecond, nil
}

// examined stores a report before the mover, which has it, is gone.
func (e *examining) examined(c metav1.Condition) {
	c.Reason = v1beta1.ReasonExamined
	e.setSealed(c)
}

// begin has the disks copied, and starts the mover when they are.
func (e *examining) begin(ctx context.Context) error {
	disks, err := e.disks(ctx)
	if err != nil {
		return err
	}
	// No user has to be permitted: the disks are what a capture has made.
	copies, waiting, err := e.copies(ctx, disks, nil, e.object.Namespace)
	if err != nil {
		return err
	}
	if waiting == "" {
		waiting, err = "waiting for the pod of the mover", e.start(ctx, disks, copies)
	}
	if err == nil {
		e.progressing(v1beta1.TransferPreparing, v1beta1.ReasonExamining, waiting)
	}
	return err
}

// disks returns the disks of the template that the capture has created. CD-ROMs are not examined.
func (e *examining) disks(ctx context.Context) ([]exported, error) {
	name := e.object.Status.TemplateRef.Name
	template := &v1beta1.VirtualMachineTemplate{}
	found, err := get(ctx, e.cluster, e.object.Namespace, name, template)
	if err != nil {
		return nil, err
	}
	if !found || !e.hasCreated(template) {
		return nil, &permanentError{ReasonTemplateUnusable, fmt.Sprintf("VirtualMachineTemplate %s/%s was deleted in the meantime", e.object.Namespace, name)}
	}
	prepared, err := prepareCaptured(template)
	if err != nil {
		return nil, &permanentError{ReasonTemplateUnusable, err.Error()}
	}
	var captures []exported
	for _, disk := range prepared.disks {
		// A capture names claims of its namespace. What else is in the template was written by a user meanwhile.
		if disk.cdrom || disk.source.Kind != disks.ClaimKind || disk.source.Namespace != e.object.Namespace {
			continue
		}
		captured := &unstructured.Unstructured{}
		captured.SetGroupVersionKind(cdi.WithKind("DataVolume"))
		found, err := get(ctx, e.cluster, disk.source.Namespace, disk.source.Name, captured)
		if err != nil {
			return nil, fmt.Errorf("reading DataVolume %s/%s: %w", disk.source.Namespace, disk.source.Name, err)
		}
		if found && ownedBy(captured, template) {
			captures = append(captures, disk)
		}
	}
	switch {
	case len(captures) == 0:
		return nil, &permanentError{ReasonTemplateUnusable, fmt.Sprintf("VirtualMachineTemplate %s/%s has no captured disk", e.object.Namespace, name)}
	case len(captures) > e.settings.MaxDisks:
		return nil, &permanentError{transfer.ReasonLimitExceeded, fmt.Sprintf("the template has %d disks, and at most %d are examined", len(captures), e.settings.MaxDisks)}
	}
	return captures, nil
}

// prepareCaptured finds the disks of a captured template, which are not selected by parameters.
func prepareCaptured(template *v1beta1.VirtualMachineTemplate) (*exportable, error) {
	if template.Spec.VirtualMachine == nil {
		return nil, fmt.Errorf("template %s has no VirtualMachine", template.Name)
	}
	vm, err := machine.Decode(template.Spec.VirtualMachine.Raw)
	if err != nil {
		return nil, fmt.Errorf("reading the VirtualMachine of template %s: %w", template.Name, err)
	}
	return prepare(template, vm)
}

func ownedBy(object client.Object, template *v1beta1.VirtualMachineTemplate) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(reference metav1.OwnerReference) bool { return reference.UID == template.UID })
}

// hasCreated reports whether a template is that of the request, which it owns.
func (e *examining) hasCreated(template *v1beta1.VirtualMachineTemplate) bool {
	return template.DeletionTimestamp == nil && ownedBy(e.object, template)
}

// start creates what the mover needs, and its Job.
func (e *examining) start(ctx context.Context, disks []exported, copies []corev1.PersistentVolumeClaim) error {
	task := &transfer.Task{Stage: transfer.Examine, Limits: transfer.Limits{Disks: e.settings.MaxDisks, Seconds: int64(examineTimeout.Seconds())}}
	j := job{secret: e.owner.called("")}
	mountCopies(task, &j, disks, copies)
	secret, digest, err := e.owner.secret(j.secret, task, e.who)
	if err != nil {
		return err
	}
	j.digest = digest
	if err := replace(ctx, e.cluster, secret); err != nil {
		return err
	}
	// It connects to nothing, and accepts connections of the manager only.
	policy := e.owner.networkPolicy(false, &e.settings)
	policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{}
	for _, object := range []client.Object{policy, e.owner.job(e.owner.called(""), j, &e.settings)} {
		if err := ensure(ctx, e.cluster, object); err != nil {
			return err
		}
	}
	return nil
}

// conclude deletes what the examination needed, and publishes its report.
func (e *examining) conclude(ctx context.Context, c metav1.Condition) error {
	if err := e.discard(ctx); err != nil {
		return err
	}
	c.Reason = sealReason(c.Status, acknowledges(e.object))
	e.setSealed(c)
	e.report(ctx, e.object.Status.TemplateRef.Name, func(template *v1beta1.VirtualMachineTemplate) (int64, bool) {
		return capturedGeneration, e.hasCreated(template)
	})
	*e.phase = v1beta1.TransferSucceeded
	return nil
}
