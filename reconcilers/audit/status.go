package audit

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/excerpt"
)

// maximumMessage is the maximum length of a condition's message in bytes.
const maximumMessage = 4096

// lastResult is the result of the last audit for one approval.
type lastResult struct {
	// uid and generation of the approval that was audited.
	uid        types.UID
	generation int64
	count      count
	at         time.Time
}

// observation is the state of one approval.
type observation struct {
	generation int64
	// invalid is why it does not compile.
	invalid error
	// templates and namespaces are the numbers of templates that it approves and of namespaces that it selects.
	templates, namespaces int32
	// unusable are approved templates that require a parameter which has no value and is not listed, as NAMESPACE/NAME (PARAMETER, …),
	// sorted.
	unusable []string
	// audited is the result of the last audit for this generation, nil if there was none since this process became the leader.
	audited *lastResult
	// auditFailure is why the last audit failed, nil if it succeeded.
	auditFailure error
}

// statusOf returns the status for an observation, given the stored status. The result equals the stored status if at most the time of the
// audit differs.
func statusOf(stored v1alpha1.TemplateApprovalStatus, o observation) v1alpha1.TemplateApprovalStatus {
	next := *stored.DeepCopy()
	next.ObservedGeneration = o.generation
	next.Templates, next.Namespaces = ptr.To(o.templates), ptr.To(o.namespaces)
	switch {
	case o.audited != nil:
		next.Conforming, next.Violating = ptr.To(o.audited.count.conforming), ptr.To(o.audited.count.violating)
		next.Violations = o.audited.count.violations
		next.Warned, next.Warnings = o.audited.count.warned, o.audited.count.warnings
	case stored.ObservedGeneration != o.generation:
		// The counts are of another spec.
		next.Conforming, next.Violating, next.Violations, next.LastAuditTime = nil, nil, nil, nil
		next.Warned, next.Warnings = 0, nil
	}
	condition := ready(o)
	condition.ObservedGeneration = o.generation
	meta.SetStatusCondition(&next.Conditions, condition)
	if o.audited != nil && (next.LastAuditTime == nil || !equality.Semantic.DeepEqual(stored, next)) {
		next.LastAuditTime = ptr.To(metav1.NewTime(o.audited.at))
	}
	return next
}

// ready returns the condition Ready.
func ready(o observation) metav1.Condition {
	is := func(status metav1.ConditionStatus, reason, format string, arguments ...any) metav1.Condition {
		return metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: status, Reason: reason,
			Message: excerpt.Of(fmt.Sprintf(format, arguments...), maximumMessage),
		}
	}
	switch {
	case o.invalid != nil:
		return is(metav1.ConditionFalse, v1alpha1.ReasonInvalidConfiguration, "it approves nothing until this is corrected: %v", o.invalid)
	case o.namespaces == 0:
		return is(metav1.ConditionFalse, v1alpha1.ReasonNoNamespaces, "it selects no namespace that exists")
	case o.templates == 0:
		return is(metav1.ConditionFalse, v1alpha1.ReasonNoTemplates, "it approves no template that exists and is valid, so that nothing satisfies it")
	case len(o.unusable) > 0:
		return is(metav1.ConditionFalse, v1alpha1.ReasonRequiredParameterClosed, "no VirtualMachine can be created from %s: list these required parameters, for which the template has no value, in spec.parameters, with the values that are allowed or with anyValue: true", excerpt.List(o.unusable, maximumPaths, "templates"))
	case o.auditFailure != nil:
		// The approval is enforced nevertheless.
		return is(metav1.ConditionTrue, v1alpha1.ReasonAuditFailed, "it is enforced; what is stored could not be audited: %v", o.auditFailure)
	default:
		return is(metav1.ConditionTrue, v1alpha1.ReasonEnforced, "it is enforced")
	}
}
