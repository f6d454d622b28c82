package exemptions

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// maximumProblems is the maximum number of names in a condition and an event.
const maximumProblems = 3

// condition returns the condition ExemptUsersFound of an approval.
func (p plan) condition(generation int64) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionExemptUsersFound, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonFound, ObservedGeneration: generation,
		Message: "no configured name is that of an unknown controller",
	}
	if len(p.problems) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonNotInstalled, p.note()
	}
	return c
}

// note explains the problems.
func (p plan) note() string {
	note := "names in the chart value exemptUsers that exempt no user: "
	for i, each := range p.problems[:min(len(p.problems), maximumProblems)] {
		if i > 0 {
			note += "; "
		}
		note += each.String()
	}
	if more := len(p.problems) - maximumProblems; more > 0 {
		note += fmt.Sprintf("; and %d more", more)
	}
	return note
}
