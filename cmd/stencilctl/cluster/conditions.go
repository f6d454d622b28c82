package cluster

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reported are the conditions of an object that were printed last, by type.
type Reported map[string]metav1.Condition

// Print prints a condition if it has changed since it was printed.
func (r Reported) Print(to io.Writer, condition metav1.Condition) {
	last := r[condition.Type]
	if last.Status == condition.Status && last.Reason == condition.Reason && last.Message == condition.Message {
		return
	}
	r[condition.Type] = condition
	fmt.Fprintf(to, "%s %s (%s): %s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
}
