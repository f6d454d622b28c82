package evaluation

import (
	"time"

	"github.com/vmstencil/stencil/rego"
)

// Decision is what the policies have against a request, by policy in the order in
// which they were given, and by message.
type Decision struct {
	// Denials are why the request is to be refused.
	Denials []Violation
	// Warnings are what the person who asks is to be told.
	Warnings []Violation
	// Audited are the findings of policies under EnforcementAudit.
	Audited []Violation
	// Evaluations are one for each policy.
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
	// Failure says that the policy could not be evaluated, and that its failure mode
	// decided. Message says why, without the policy's name.
	Failure bool
}

// Rule is an entry rule of a policy.
type Rule string

// The entry rules.
const (
	RuleDeny Rule = "deny"
	RuleWarn Rule = "warn"
)

// Evaluation is what one policy had to say, and what that took.
type Evaluation struct {
	Policy, Digest string
	Enforcement    Enforcement
	// Outcome is what the policy found, whatever its enforcement makes of it.
	Outcome Outcome
	// Duration is 0 when the policy was not evaluated.
	Duration time.Duration
	// Truncated says that the policy found more than it may return.
	Truncated bool
	// Err is why there is no result under OutcomeError, OutcomeTimeout and
	// OutcomeQuarantined.
	Err error
}

// Outcome is how an evaluation ended.
type Outcome string

const (
	// OutcomeAllow is that nothing was found.
	OutcomeAllow Outcome = "allow"
	// OutcomeDeny is that rule deny found something.
	OutcomeDeny Outcome = "deny"
	// OutcomeWarn is that only rule warn found something.
	OutcomeWarn Outcome = "warn"
	// OutcomeError is that the policy failed, or that who sent the request gave it up.
	OutcomeError Outcome = "error"
	// OutcomeTimeout is that the deadline of the policy, or of the whole request, passed.
	OutcomeTimeout Outcome = "timeout"
	// OutcomeQuarantined is that the policy was not evaluated, because it has run into
	// its deadline too often.
	OutcomeQuarantined Outcome = "quarantined"
)

// Failed says that there is no result, so that the failure mode decides.
func (o Outcome) Failed() bool {
	return o == OutcomeError || o == OutcomeTimeout || o == OutcomeQuarantined
}

// merge adds what one policy had to say.
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

// outcome is that of an evaluation that came to a result.
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
