package proofs

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/policies/proof"
)

const (
	// maximumNamed is the maximum number of results in a message.
	maximumNamed = 5
	// maximumMessage is the maximum length of a condition's message, in bytes.
	maximumMessage = 2048
)

// finding is the result of a policy, with what a message names besides.
type finding struct {
	*decided
	// template is empty in the condition of the template, approval in that of the approval and without one.
	template, approval string
	// namespace is empty if all namespaces have the same result.
	namespace string
}

// findings are the results of all questions about a template or an approval.
type findings struct {
	// any means that a policy applies.
	any bool
	// found are those that a message may name.
	found []finding
	// open are questions that were not decided.
	open []string
}

// add adds the results of a question.
func (f *findings) add(a *answer, like finding) {
	for _, d := range a.decided {
		f.any = true
		if like.decided = d; !d.plain() {
			f.found = append(f.found, like)
		}
	}
}

// condition returns the condition, without the time of its last transition; nil if no policy applies.
func (f *findings) condition(generation int64, compliant string) *metav1.Condition {
	if !f.any {
		return nil
	}
	is := func(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
		return &metav1.Condition{
			Type: v1beta1.ConditionPolicyCompliantForAllValues, Status: status, ObservedGeneration: generation,
			Reason: reason, Message: excerpt.Of(message, maximumMessage),
		}
	}
	denied, failed, undecided := f.sentences(proof.Counterexample), f.sentences(proof.Failed), append(f.sentences(proof.Undecided), f.open...)
	switch {
	case len(denied) > 0:
		return is(metav1.ConditionFalse, v1beta1.ReasonPolicyViolations, excerpt.Sentences(denied, maximumNamed))
	case len(failed) > 0:
		return is(metav1.ConditionUnknown, v1beta1.ReasonNotEvaluated, excerpt.Sentences(failed, maximumNamed))
	case len(undecided) > 0:
		return is(metav1.ConditionUnknown, v1beta1.ReasonNotDecided, "no VirtualMachine that is denied was found, but not all were decided: "+excerpt.Sentences(undecided, maximumNamed))
	default:
		return is(metav1.ConditionTrue, v1beta1.ReasonCompliant, excerpt.Sentences(append([]string{compliant}, f.sentences(proof.Holds)...), maximumNamed))
	}
}

// sentences describes the results of a status: those with the fewest values first, and equal ones of several approvals once.
func (f *findings) sentences(status proof.Status) []string {
	of := slices.DeleteFunc(slices.Clone(f.found), func(one finding) bool { return one.effective() != status })
	slices.SortStableFunc(of, func(a, b finding) int { return cmp.Compare(len(a.values), len(b.values)) })
	type equal struct {
		finding
		approvals []string
	}
	var all []*equal
	known := map[string]*equal{}
	for _, one := range of {
		text := one.sentence(nil)
		if known[text] == nil {
			known[text] = &equal{finding: one}
			all = append(all, known[text])
		}
		if same := known[text]; one.approval != "" && !slices.Contains(same.approvals, one.approval) {
			same.approvals = append(same.approvals, one.approval)
		}
	}
	var texts []string
	for _, one := range all {
		texts = append(texts, one.sentence(one.approvals))
	}
	return texts
}

// effective is the status, which is not that the policy holds while it depends on values that were not tried.
func (f *finding) effective() proof.Status {
	if f.status == proof.Holds && len(f.held) > 0 {
		return proof.Undecided
	}
	return f.status
}

// sentence describes a result, which is that of these approvals.
func (f *finding) sentence(approvals []string) string {
	subject := "with " + f.assignments()
	policy := "policy " + f.policy.Name()
	if f.template != "" {
		subject = "template " + f.template + " " + subject
	}
	if len(approvals) > 0 {
		subject += ", approved by " + excerpt.List(approvals, maximumNames, "")
	}
	if f.namespace != "" {
		subject += " in namespace " + f.namespace
	}
	switch {
	case f.status == proof.Counterexample:
		return subject + ", " + policy + " denies: " + f.text
	case f.status == proof.Failed:
		return subject + ", " + policy + " could not be evaluated: " + f.text
	case f.effective() == proof.Undecided:
		if f.template != "" {
			policy += " for template " + f.template
		}
		reason := f.reason
		if f.status == proof.Holds {
			reason = "it depends on parameters whose values are not listed: " + excerpt.List(f.held, maximumNames, "")
		}
		return policy + ": " + reason
	default:
		return policy + " was decided for no specific " + strings.Join(f.reads, " and ")
	}
}

// assignments returns the values of the example.
func (f *finding) assignments() string {
	var texts []string
	for _, v := range f.values {
		texts = append(texts, v.Parameter+"="+excerpt.Of(v.Value, maximumValue))
	}
	if len(texts) == 0 {
		return "its defaults"
	}
	return strings.Join(texts, ", ")
}

// maximumValue is the maximum length of a value in a message, in bytes.
const maximumValue = 128
