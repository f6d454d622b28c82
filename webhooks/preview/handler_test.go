package preview_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	"github.com/vmstencil/stencil/approval"
	below "github.com/vmstencil/stencil/internal/preview"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/template/validations/vmrules"
	"github.com/vmstencil/stencil/webhooks/internal/decision"
	"github.com/vmstencil/stencil/webhooks/preview"
)

// fakeEvaluator is a fake Evaluator with a fixed result.
type fakeEvaluator struct {
	decisions decision.Decisions
	denial    *admission.Response
}

func (e fakeEvaluator) Evaluate(context.Context, admission.Request) (decision.Decisions, *admission.Response) {
	return e.decisions, e.denial
}

func TestWhatIsSaid(t *testing.T) {
	objection := []approval.Objection{{Approval: "team", Field: "parameters[SIZE]", Message: "large is not allowed"}}
	violation := policyset.Violation{Policy: "sizes", Finding: rego.Finding{Message: "too large", Field: "spec.instancetype", Fix: "take u1.small"}}
	finding := vmrules.Finding{Source: "template golden/box", Rule: "memory", Field: "spec.template.spec.domain.memory.guest", Message: "too small"}
	approved := func(effect v1beta1.Effect, message string) v1beta1.Decision {
		return v1beta1.Decision{Decision: effect, Kind: "TemplateApproval", Policy: "team", Field: "parameters[SIZE]", Message: message}
	}
	policy := func(effect v1beta1.Effect, message string) v1beta1.Decision {
		return v1beta1.Decision{Decision: effect, Kind: "VirtualMachinePolicy", Policy: "sizes", Message: message, Field: "spec.instancetype", Fix: "take u1.small"}
	}
	rule := func(effect v1beta1.Effect) v1beta1.Decision {
		return v1beta1.Decision{Decision: effect, Kind: "Rules", Policy: "template golden/box", Message: "memory: too small", Field: finding.Field}
	}
	allowed := approval.Decision{Allowed: true}
	exception := policyset.NewException(&v1alpha1.PolicyException{
		ObjectMeta: metav1.ObjectMeta{Name: "legacy"}, Spec: v1alpha1.PolicyExceptionSpec{ExpiresAt: metav1.NewTime(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))},
	})
	for _, tc := range []struct {
		name         string
		decisions    decision.Decisions
		want         []v1beta1.Decision
		wantWarnings []string
	}{
		{name: "nobody judges", decisions: decision.Decisions{Approvals: allowed}, want: []v1beta1.Decision{}},
		{
			name:      "everybody consents",
			decisions: decision.Decisions{Approvals: approval.Decision{Governed: true, Allowed: true, By: "team"}, Policies: policyset.Decision{Evaluations: []policyset.Evaluation{{Policy: "sizes", Result: policyset.ResultAllow}}}},
			want:      []v1beta1.Decision{{Decision: "allow", Kind: "TemplateApproval", Policy: "team"}, {Decision: "allow", Kind: "VirtualMachinePolicy", Policy: "sizes"}},
		},
		{
			name:      "somebody whom the approvals exempt",
			decisions: decision.Decisions{Approvals: approval.Decision{Governed: true, Allowed: true, Exempt: true}},
			want:      []v1beta1.Decision{{Decision: "allow", Kind: "TemplateApproval", Message: "the approvals of the namespace exempt you"}},
		},
		{
			name: "everybody denies",
			decisions: decision.Decisions{
				Approvals: approval.Decision{Governed: true, Enforcement: v1alpha1.EnforcementDeny, Objections: objection},
				Policies:  policyset.Decision{Denials: []policyset.Violation{violation}, Evaluations: []policyset.Evaluation{{Policy: "sizes", Result: policyset.ResultDeny}, {Policy: "other", Result: policyset.ResultAllow}}},
				Rules:     vmrules.Decision{Denials: []vmrules.Finding{finding}},
			},
			want: []v1beta1.Decision{approved("deny", "large is not allowed"), policy("deny", "too large"), rule("deny"), {Decision: "allow", Kind: "VirtualMachinePolicy", Policy: "other"}},
		},
		{
			name: "an exception allows what a policy denies, and what another audits",
			decisions: decision.Decisions{Approvals: allowed, Policies: policyset.Decision{
				Excepted:    []policyset.Excepted{{Violation: violation, Enforcement: policyset.EnforcementDeny, Exception: exception}, {Violation: violation, Enforcement: policyset.EnforcementAudit, Exception: exception}},
				Evaluations: []policyset.Evaluation{{Policy: "sizes", Result: policyset.ResultDeny}},
			}},
			want: []v1beta1.Decision{
				policy("warn", "PolicyException legacy allows until 2026-12-01T00:00:00Z: too large"), policy("allow", "PolicyException legacy allows until 2026-12-01T00:00:00Z: too large"),
			},
			wantWarnings: []string{"policy sizes is violated, which PolicyException legacy allows until 2026-12-01T00:00:00Z"},
		},
		{
			name: "everybody warns",
			decisions: decision.Decisions{
				Approvals: approval.Decision{Governed: true, Enforcement: v1alpha1.EnforcementWarn, Objections: objection},
				Policies:  policyset.Decision{Warnings: []policyset.Violation{violation}},
				Rules:     vmrules.Decision{Warnings: []vmrules.Finding{finding}},
			},
			want: []v1beta1.Decision{approved("warn", "large is not allowed"), policy("warn", "too large"), rule("warn")},
			wantWarnings: []string{
				`not approved: parameters[SIZE]: large is not allowed (approval "team")`, "policy sizes: too large at spec.instancetype; fix: take u1.small",
				"rule memory of template golden/box: too small at spec.template.spec.domain.memory.guest",
			},
		},
		{
			name: "what is only audited stands in nobody's way",
			decisions: decision.Decisions{
				Approvals: approval.Decision{Governed: true, Enforcement: v1alpha1.EnforcementAudit, Objections: objection},
				Policies:  policyset.Decision{Audited: []policyset.Violation{violation}},
			},
			want: []v1beta1.Decision{approved("allow", "only audited: large is not allowed"), policy("allow", "only audited: too large")},
		},
		{
			name: "a policy that fails and lets pass, and a size that is not known",
			decisions: decision.Decisions{
				Approvals: allowed,
				Policies:  policyset.Decision{Evaluations: []policyset.Evaluation{{Policy: "sizes", Result: policyset.ResultTimeout}}},
				Rules:     vmrules.Decision{Unevaluated: []vmrules.Finding{finding}},
			},
			want: []v1beta1.Decision{rule("deny"), {Decision: "allow", Kind: "VirtualMachinePolicy", Policy: "sizes", Message: "it could not be evaluated, which it lets pass"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			response := preview.New(fakeEvaluator{decisions: tc.decisions}).Handle(t.Context(), admission.Request{})
			if response.Allowed {
				t.Fatal("a preview let a request pass")
			}
			got, found := below.Decisions(&apierrors.StatusError{ErrStatus: *response.Result})
			if !found {
				t.Fatalf("no decisions in %+v", response.Result)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, response.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoPreviewWithoutAnEvaluation(t *testing.T) {
	denial := admission.Response{}
	denial.Result = &metav1.Status{Code: 503, Reason: metav1.StatusReasonServiceUnavailable}
	response := preview.New(fakeEvaluator{denial: &denial}).Handle(t.Context(), admission.Request{})
	if response.Allowed || response.Result.Code != 503 {
		t.Errorf("%+v", response)
	}
}
