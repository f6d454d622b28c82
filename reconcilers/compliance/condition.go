package compliance

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/excerpt"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
)

const (
	// maximumNamed is the maximum number of violations in a message.
	maximumNamed = 5
	// maximumMessage is the maximum length of a condition's message, in bytes.
	maximumMessage = 4096
	// maximumCause is the maximum length of a cause in the status of a policy, in bytes.
	maximumCause = 1024
)

// condition returns the condition PolicyCompliant, without the time of its last transition; nil for a template that no policy applies to.
func (j *evaluation) condition(generation int64) *metav1.Condition {
	if len(j.applying) == 0 {
		return nil
	}
	is := func(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
		return &metav1.Condition{
			Type: v1beta1.ConditionPolicyCompliant, Status: status, ObservedGeneration: generation,
			Reason: reason, Message: excerpt.Of(message, maximumMessage),
		}
	}
	denied, failed := split(j.decision.Denials)
	others := slices.Concat(j.decision.Warnings, j.decision.Audited)
	switch {
	case j.sampleError != nil:
		return is(metav1.ConditionUnknown, j.sampleError.Reason, j.sampleError.Message)
	case len(denied) > 0:
		return is(metav1.ConditionFalse, v1beta1.ReasonPolicyViolations, "with its defaults, VirtualMachines of this template are denied: "+enumerate(denied))
	case len(failed) > 0:
		return is(metav1.ConditionUnknown, v1beta1.ReasonNotEvaluated, enumerate(failed))
	case len(others) > 0:
		return is(metav1.ConditionTrue, v1beta1.ReasonPolicyWarnings, "with its defaults, VirtualMachines of this template are not denied, but: "+enumerate(others))
	default:
		return is(metav1.ConditionTrue, v1beta1.ReasonCompliant, "no policy objects to what this template makes with its defaults")
	}
}

// split separates violations that policies report from failures to evaluate a policy.
func split(violations []policyset.Violation) (found, failed []policyset.Violation) {
	for _, v := range violations {
		if v.Failure {
			failed = append(failed, v)
		} else {
			found = append(found, v)
		}
	}
	return found, failed
}

func enumerate(violations []policyset.Violation) string {
	var texts []string
	for _, v := range violations {
		texts = append(texts, "policy "+v.Policy+separator(v)+text(v))
	}
	return excerpt.Sentences(texts, maximumNamed)
}

func separator(v policyset.Violation) string {
	if v.Failure {
		return " "
	}
	return ": "
}

func text(v policyset.Violation) string {
	if v.Field == "" {
		return v.Message
	}
	return v.Message + " at " + v.Field
}

// objections returns the first violation of the rule deny of each policy, by the policy's name, whatever its enforcement. A policy that
// could not be evaluated has none.
func (j *evaluation) objections() map[string]string {
	first := map[string]string{}
	for _, v := range slices.Concat(j.decision.Denials, j.decision.Warnings, j.decision.Audited) {
		if v.Failure || v.Rule != policyset.RuleDeny {
			continue
		}
		if _, found := first[v.Policy]; !found {
			first[v.Policy] = excerpt.Of(text(v), maximumCause)
		}
	}
	return first
}
