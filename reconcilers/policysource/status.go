package policysource

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
	"github.com/vmstencil/stencil/reconcilers/policysource/artifact"
)

const (
	// maximumMessage is the maximum length of a message in bytes.
	maximumMessage = 1 << 10
	// maximumNames is the maximum number of names in a message.
	maximumNames = 5
)

// Errors of applying an artifact.
type (
	// conflictError has the names of policies of other owners.
	conflictError struct{ names []string }
	// rejectedError is the error of a policy that admission rejects.
	rejectedError struct{ error }
)

func (e *conflictError) Error() string {
	return "policies of other owners have these names: " + excerpt.List(e.names, maximumNames, "")
}

func (e *rejectedError) Unwrap() error { return e.error }

// observation is what a reconciliation has observed.
type observation struct {
	// enabled is set if the manager may write policies.
	enabled bool
	// checked is set if the artifact was read or could not be read since the manager started; failure is why not.
	checked bool
	failure error
	// problem is why the artifact that was read is not applied.
	problem error
	// active is what is applied; nil if that is not known.
	active *artifact.Artifact
	// left are the policies of the source that it does not have.
	left []string
}

// decide returns the status of a source, and whether it differs from the stored one.
func decide(source *v1alpha1.VirtualMachinePolicySource, o observation, now time.Time) (*v1alpha1.VirtualMachinePolicySourceStatus, bool) {
	before := &source.Status
	next := before.DeepCopy()
	next.ObservedGeneration = source.Generation
	if o.checked {
		next.Refreshed = source.Annotations[v1alpha1.AnnotationRefresh]
	}
	if o.active != nil {
		next.Policies, next.Left = names(o.active), o.left
		if next.Digest != o.active.Digest {
			at := metav1.NewTime(now)
			next.Digest, next.AppliedAt = o.active.Digest, &at
		}
	}
	changed := before.ObservedGeneration != next.ObservedGeneration || before.Refreshed != next.Refreshed || before.Digest != next.Digest ||
		!slices.Equal(before.Policies, next.Policies) || !slices.Equal(before.Left, next.Left)
	next.Conditions = nil
	for _, condition := range []metav1.Condition{verified(before, o), ready(source, next, o)} {
		condition.ObservedGeneration, condition.Message = source.Generation, excerpt.Of(condition.Message, maximumMessage)
		transition, differs := statuswriter.Transition(before.Conditions, condition, now)
		next.Conditions, changed = append(next.Conditions, transition), changed || differs
	}
	return next, changed
}

func names(of *artifact.Artifact) []string {
	all := make([]string, len(of.Policies))
	for i, each := range of.Policies {
		all[i] = each.GetName()
	}
	slices.Sort(all)
	return all
}

// verified is whether the artifact that was last found is signed.
func verified(before *v1alpha1.VirtualMachinePolicySourceStatus, o observation) metav1.Condition {
	made := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionVerified, Status: status, Reason: reason, Message: message}
	}
	var broken *artifact.InvalidError
	switch {
	case !o.checked:
		for _, stored := range before.Conditions {
			if stored.Type == v1alpha1.ConditionVerified {
				return made(stored.Status, stored.Reason, stored.Message)
			}
		}
		return made(metav1.ConditionUnknown, v1alpha1.ReasonPolicySourceCheckFailed, "the artifact was not checked yet")
	case errors.Is(o.failure, artifact.ErrNotSigned):
		return made(metav1.ConditionFalse, v1alpha1.ReasonPolicySourceNotSigned, o.failure.Error())
	case o.failure != nil && !errors.As(o.failure, &broken):
		return made(metav1.ConditionUnknown, v1alpha1.ReasonPolicySourceCheckFailed, o.failure.Error())
	}
	return made(metav1.ConditionTrue, v1alpha1.ReasonPolicySourceSigned, "the artifact is signed with a key of spec.verify.publicKeys")
}

// ready is whether the policies of the artifact that was last found are applied.
func ready(source *v1alpha1.VirtualMachinePolicySource, next *v1alpha1.VirtualMachinePolicySourceStatus, o observation) metav1.Condition {
	made := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message}
	}
	remains := "; no policy was applied yet"
	switch {
	case len(next.Policies) == 1:
		remains = fmt.Sprintf("; policy %s of %s remains", next.Policies[0], next.Digest)
	case next.Digest != "":
		remains = fmt.Sprintf("; %d policies of %s remain", len(next.Policies), next.Digest)
	}
	failed := func(reason, message string) metav1.Condition {
		// What remains is not cut off.
		return made(metav1.ConditionFalse, reason, excerpt.Of(message, maximumMessage-len(remains))+remains)
	}
	var broken *artifact.InvalidError
	var conflict *conflictError
	var rejected *rejectedError
	switch {
	case !o.enabled:
		return failed(v1alpha1.ReasonPolicySourceNotEnabled, "policy sources are not enabled: set the chart's value policySources.enabled")
	case source.Spec.Suspended:
		return made(metav1.ConditionUnknown, v1alpha1.ReasonPolicySourceSuspended, "spec.suspended stops checks and changes of policies"+remains)
	case errors.Is(o.failure, artifact.ErrNotSigned):
		return failed(v1alpha1.ReasonPolicySourceNotSigned, o.failure.Error()+": sign this digest with cosign, or correct the keys")
	case errors.As(o.failure, &broken):
		return failed(v1alpha1.ReasonPolicySourceInvalid, o.failure.Error())
	case o.failure != nil:
		return failed(v1alpha1.ReasonPolicySourceCheckFailed, o.failure.Error())
	case errors.As(o.problem, &conflict):
		return failed(v1alpha1.ReasonPolicySourceConflict, fmt.Sprintf(
			"%s; rename or delete them, or give them label %s=%s so that the source replaces them", conflict, v1alpha1.LabelPolicySource, source.Name))
	case errors.As(o.problem, &rejected):
		return failed(v1alpha1.ReasonPolicySourceRejected, rejected.Error()+"; nothing of the artifact was applied")
	case o.problem != nil:
		return failed(v1alpha1.ReasonPolicySourceWriteFailed, o.problem.Error())
	}
	message := fmt.Sprintf("%d policies of %s are applied", len(next.Policies), next.Digest)
	if len(next.Policies) == 1 {
		message = fmt.Sprintf("policy %s of %s is applied", next.Policies[0], next.Digest)
	}
	if len(next.Left) > 0 {
		message += fmt.Sprintf("; not in the artifact any more, but they remain without spec.prune: %s", excerpt.List(next.Left, maximumNames, ""))
	}
	return made(metav1.ConditionTrue, v1alpha1.ReasonPolicySourceApplied, message)
}
