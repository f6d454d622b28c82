package preview

import (
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
)

const (
	// reason is the reason of the status that carries decisions.
	reason metav1.StatusReason = "Previewed"
	// causeDecision is the type of the causes that are decisions.
	causeDecision metav1.CauseType = "Decision"
	// maximumDecisions is how many decisions a status has; its size must be acceptable for every client.
	maximumDecisions = 512
)

// Status is the denial that carries decisions, denials first.
func Status(decisions []v1beta1.Decision) metav1.Status {
	status := metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusForbidden,
		Reason:  reason,
		Message: "this is a preview, which stores nothing",
		Details: &metav1.StatusDetails{Group: "kubevirt.io", Kind: "virtualmachines"},
	}
	for _, decision := range decisions[:min(len(decisions), maximumDecisions)] {
		raw, err := json.Marshal(decision)
		if err != nil {
			panic("encoding strings as JSON: " + err.Error())
		}
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: causeDecision, Field: decision.Field, Message: string(raw)})
	}
	return status
}

// Decisions returns the decisions in the error of a creation. It returns false when that is another error, or none.
func Decisions(err error) ([]v1beta1.Decision, bool) {
	var answered apierrors.APIStatus
	if !errors.As(err, &answered) || answered.Status().Reason != reason || answered.Status().Details == nil {
		return nil, false
	}
	decisions := []v1beta1.Decision{}
	for _, cause := range answered.Status().Details.Causes {
		var decision v1beta1.Decision
		if cause.Type != causeDecision || json.Unmarshal([]byte(cause.Message), &decision) != nil {
			return nil, false
		}
		decisions = append(decisions, decision)
	}
	return decisions, true
}
