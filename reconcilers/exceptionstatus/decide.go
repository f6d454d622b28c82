package exceptionstatus

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
)

// statusOf returns the status of an exception without its audit, and whether it differs from the stored one. known reports whether a
// policy exists.
func statusOf(object *v1alpha1.PolicyException, known func(policy string) bool, now time.Time) (*v1alpha1.PolicyExceptionStatus, bool) {
	next := &v1alpha1.PolicyExceptionStatus{ObservedGeneration: object.Generation}
	changed := object.Status.ObservedGeneration != object.Generation
	for _, condition := range []metav1.Condition{active(object, now), ready(object, known)} {
		condition.ObservedGeneration = object.Generation
		condition, differs := statuswriter.Transition(object.Status.Conditions, condition, now)
		next.Conditions, changed = append(next.Conditions, condition), changed || differs
	}
	return next, changed
}

func active(object *v1alpha1.PolicyException, now time.Time) metav1.Condition {
	expires := object.Spec.ExpiresAt.UTC().Format(time.RFC3339)
	if now.Before(object.Spec.ExpiresAt.Time) {
		return metav1.Condition{Type: v1alpha1.ConditionActive, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUnexpired, Message: "it applies until " + expires}
	}
	return metav1.Condition{Type: v1alpha1.ConditionActive, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonExpired, Message: "it ended at " + expires}
}

func ready(object *v1alpha1.PolicyException, known func(policy string) bool) metav1.Condition {
	var unknown []string
	for _, policy := range object.Spec.Policies {
		if !known(policy) {
			unknown = append(unknown, policy)
		}
	}
	if len(unknown) > 0 {
		return metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnknownPolicies,
			Message: fmt.Sprintf("these VirtualMachinePolicies do not exist: %s", strings.Join(unknown, ", ")),
		}
	}
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPoliciesFound, Message: "every policy that it names exists"}
}
