package preview

import (
	"slices"

	stencilv1alpha1 "github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/preview"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/template/validations/vmrules"
	"github.com/vmstencil/stencil/webhooks/internal/decision"
)

// decisions converts the decisions about a request into those of the API, denials first.
func decisions(j decision.Decisions) []v1beta1.Decision {
	all := slices.Concat(ofApprovals(j.Approvals), ofPolicies(j.Policies), ofRules(j.Rules))
	preview.Sort(all)
	return all
}

func ofApprovals(v approval.Decision) []v1beta1.Decision {
	decision := v1beta1.Decision{Decision: v1beta1.EffectAllow, Kind: v1beta1.DecisionKindApproval}
	switch {
	case !v.Governed:
		return nil
	case v.Exempt:
		decision.Message = "the approvals of the namespace exempt you"
		return []v1beta1.Decision{decision}
	case v.Allowed:
		decision.Policy = v.By
		return []v1beta1.Decision{decision}
	case v.Enforcement == stencilv1alpha1.EnforcementDeny:
		decision.Decision = v1beta1.EffectDeny
	case v.Enforcement == stencilv1alpha1.EnforcementWarn:
		decision.Decision = v1beta1.EffectWarn
	}
	all := make([]v1beta1.Decision, len(v.Objections))
	for i, objection := range v.Objections {
		all[i] = decision
		all[i].Policy, all[i].Field, all[i].Message = objection.Approval, objection.Field, objection.Message
		if decision.Decision == v1beta1.EffectAllow {
			all[i].Message = audited + objection.Message
		}
	}
	return all
}

// audited is the prefix of the message of a decision that is recorded and does not deny.
const audited = "only audited: "

func ofPolicies(d policyset.Decision) []v1beta1.Decision {
	var all []v1beta1.Decision
	reported := map[string]bool{}
	add := func(effect v1beta1.Effect, prefix string, violations []policyset.Violation) {
		for _, v := range violations {
			reported[v.Policy] = true
			all = append(all, v1beta1.Decision{
				Decision: effect, Kind: v1beta1.DecisionKindPolicy, Policy: v.Policy, Message: prefix + v.Message, Field: v.Field, Fix: v.Fix,
			})
		}
	}
	add(v1beta1.EffectDeny, "", d.Denials)
	add(v1beta1.EffectWarn, "", d.Warnings)
	add(v1beta1.EffectAllow, audited, d.Audited)
	for _, e := range d.Excepted {
		effect := v1beta1.EffectAllow
		if e.Warns() {
			effect = v1beta1.EffectWarn
		}
		reported[e.Policy] = true
		all = append(all, v1beta1.Decision{
			Decision: effect, Kind: v1beta1.DecisionKindPolicy, Policy: e.Policy, Message: e.Exception.Allows() + ": " + e.Message, Field: e.Field, Fix: e.Fix,
		})
	}
	for _, evaluation := range d.Evaluations {
		switch {
		case reported[evaluation.Policy]:
		case evaluation.Result.Failed():
			all = append(all, v1beta1.Decision{
				Decision: v1beta1.EffectAllow, Kind: v1beta1.DecisionKindPolicy, Policy: evaluation.Policy, Message: "it could not be evaluated, which it lets pass",
			})
		default:
			all = append(all, v1beta1.Decision{Decision: v1beta1.EffectAllow, Kind: v1beta1.DecisionKindPolicy, Policy: evaluation.Policy})
		}
	}
	return all
}

func ofRules(v vmrules.Decision) []v1beta1.Decision {
	var all []v1beta1.Decision
	add := func(effect v1beta1.Effect, findings []vmrules.Finding) {
		for _, f := range findings {
			message := f.Message
			if f.Rule != "" {
				message = f.Rule + ": " + message
			}
			all = append(all, v1beta1.Decision{Decision: effect, Kind: v1beta1.DecisionKindRules, Policy: f.Source, Message: message, Field: f.Field})
		}
	}
	add(v1beta1.EffectDeny, v.Denials)
	add(v1beta1.EffectDeny, v.Unevaluated)
	add(v1beta1.EffectWarn, v.Warnings)
	return all
}
