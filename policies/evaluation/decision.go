package evaluation

import (
	"time"

	"github.com/vmstencil/stencil/rego"
)

// Decision holds the findings of the policies for a request, by policy in the order in
// which they were given, and by message.
type Decision struct {
	// Denials are the findings for which the request is to be denied.
	Denials []Violation
	// Warnings are the findings to return to the user as warnings.
	Warnings []Violation
	// Audited are the findings of policies under EnforcementAudit.
	Audited []Violation
	// Evaluations has one item for each policy.
	Evaluations []Evaluation
}

// Violation is one finding of a policy.
type Violation struct {
	Policy   string
	Title    string
	Severity rego.Severity
	rego.Finding
	// Rule is the entry rule that found it, RuleDeny or RuleWarn.
	Rule Rule
	// Failure is true if the policy could not be evaluated and its failure mode
	// decided. Message is the reason, without the policy's name.
	Failure bool
}

// Rule is an entry rule of a policy.
type Rule string

// The entry rules.
const (
	RuleDeny Rule = "deny"
	RuleWarn Rule = "warn"
)

// Evaluation is the result and the duration of the evaluation of one policy.
type Evaluation struct {
	Policy, Digest string
	Enforcement    Enforcement
	// Outcome is the result of the policy, regardless of its enforcement.
	Outcome Outcome
	// Duration is 0 when the policy was not evaluated.
	Duration time.Duration
	// Truncated is true if the policy found more than it may return.
	Truncated bool
	// Err is the reason why there is no result for OutcomeError, OutcomeTimeout and
	// OutcomeQuarantined.
	Err error
}

// Outcome is the kind of result of an evaluation.
type Outcome string

const (
	// OutcomeAllow is that nothing was found.
	OutcomeAllow Outcome = "allow"
	// OutcomeDeny is that rule deny found something.
	OutcomeDeny Outcome = "deny"
	// OutcomeWarn is that only rule warn found something.
	OutcomeWarn Outcome = "warn"
	// OutcomeError is that the policy failed, or that the client canceled the request.
	OutcomeError Outcome = "error"
	// OutcomeTimeout is that the deadline of the policy, or of the whole request, passed.
	OutcomeTimeout Outcome = "timeout"
	// OutcomeQuarantined is that the policy was not evaluated, because it has exceeded
	// its deadline too often.
	OutcomeQuarantined Outcome = "quarantined"
)

// Failed reports whether there is no result, so that the failure mode decides.
func (o Outcome) Failed() bool {
	return o == OutcomeError || o == OutcomeTimeout || o == OutcomeQuarantined
}

// merge adds the result of one policy.
func (d *Decision) merge(entry *Entry, result *rego.Result, evaluation *Evaluation) {
	if evaluation.Outcome.Failed() {
		if entry.FailureMode == FailureModeAllow {
			return
		}
		d.add(entry, RuleDeny, true, rego.Finding{Message: "could not be evaluated: " + evaluation.Err.Error()})
		return
	}
	d.add(entry, RuleDeny, false, result.Deny...)
	d.add(entry, RuleWarn, false, result.Warn...)
}

func (d *Decision) add(entry *Entry, rule Rule, failure bool, findings ...rego.Finding) {
	if len(findings) == 0 {
		return
	}
	list := &d.Denials
	switch {
	case entry.enforcement() == EnforcementAudit:
		list = &d.Audited
	case entry.enforcement() == EnforcementWarn || rule == RuleWarn:
		list = &d.Warnings
	}
	metadata := entry.Policy.Metadata()
	for _, finding := range findings {
		*list = append(*list, Violation{
			Policy:   entry.Policy.Name(),
			Title:    metadata.Title,
			Severity: metadata.Severity,
			Finding:  finding,
			Rule:     rule,
			Failure:  failure,
		})
	}
}

// outcome returns the Outcome of an evaluation with a result.
func outcome(result *rego.Result) Outcome {
	switch {
	case len(result.Deny) > 0:
		return OutcomeDeny
	case len(result.Warn) > 0:
		return OutcomeWarn
	default:
		return OutcomeAllow
	}
}
