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
	// Excepted are the findings that exceptions allow; the other fields omit them.
	Excepted []Excepted
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
	// Result is the result of the policy, regardless of its enforcement.
	Result Result
	// Duration is 0 when the policy was not evaluated.
	Duration time.Duration
	// Data are the values of the cluster that the policy reads.
	Data []rego.Binding
	// Truncated is true if the policy found more than it may return.
	Truncated bool
	// Err is the reason why there is no result for ResultError, ResultTimeout and
	// ResultQuarantined.
	Err error
}

// Result is the kind of result of an evaluation.
type Result string

const (
	// ResultAllow is that nothing was found.
	ResultAllow Result = "allow"
	// ResultDeny is that rule deny found something.
	ResultDeny Result = "deny"
	// ResultWarn is that only rule warn found something.
	ResultWarn Result = "warn"
	// ResultError is that the policy failed, or that the client canceled the request.
	ResultError Result = "error"
	// ResultTimeout is that the deadline of the policy, or of the whole request, passed.
	ResultTimeout Result = "timeout"
	// ResultQuarantined is that the policy was not evaluated, because it has exceeded
	// its deadline too often.
	ResultQuarantined Result = "quarantined"
)

// Failed reports whether there is no result, so that the failure mode decides.
func (o Result) Failed() bool {
	return o == ResultError || o == ResultTimeout || o == ResultQuarantined
}

// merge adds the result of one policy.
func (d *Decision) merge(entry *Entry, result *rego.Result, evaluation *Evaluation) {
	if evaluation.Result.Failed() {
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

// resultOf returns the Result of an evaluation with a result.
func resultOf(result *rego.Result) Result {
	switch {
	case len(result.Deny) > 0:
		return ResultDeny
	case len(result.Warn) > 0:
		return ResultWarn
	default:
		return ResultAllow
	}
}
