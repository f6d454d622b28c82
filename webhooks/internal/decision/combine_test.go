package decision_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/template/validations/vmrules"
	"github.com/vmstencil/stencil/webhooks/internal/decision"
)

func violation(policy, message, field, fix string) policyset.Violation {
	return policyset.Violation{Policy: policy, Severity: rego.SeverityHigh, Finding: rego.Finding{Message: message, Field: field, Fix: fix}, Rule: policyset.RuleDeny}
}

func failure(policy, message string) policyset.Violation {
	v := violation(policy, "could not be evaluated: "+message, "", "")
	v.Failure = true
	return v
}

func TestJoint(t *testing.T) {
	unapproved := approval.Decision{Enforcement: v1alpha1.EnforcementDeny, Objections: []approval.Objection{{Approval: "team", Field: "spec.runStrategy", Message: "no override"}}}
	warned := unapproved
	warned.Enforcement = v1alpha1.EnforcementWarn
	many := policyset.Decision{}
	for i := range 70 {
		many.Denials = append(many.Denials, violation("many", fmt.Sprint(i), "", ""))
	}
	for _, tc := range []struct {
		name         string
		approvals    approval.Decision
		policies     policyset.Decision
		rules        vmrules.Decision
		wantMessage  string // after `virtualmachines.kubevirt.io "web-1" is forbidden: `
		wantCauses   []metav1.StatusCause
		wantWarnings []string
	}{
		{name: "nobody objects", approvals: approval.Decision{Allowed: true}},
		{
			name: "one denial, with field and fix", approvals: approval.Decision{Allowed: true},
			policies:    policyset.Decision{Denials: []policyset.Violation{violation("sizes", "8 CPUs are too many", "spec.instancetype", "take u1.small")}},
			wantMessage: "policy sizes (high): 8 CPUs are too many at spec.instancetype; fix: take u1.small",
			wantCauses:  []metav1.StatusCause{{Type: metav1.CauseTypeForbidden, Field: "spec.instancetype", Message: "policy sizes (high): 8 CPUs are too many; fix: take u1.small"}},
		},
		{
			name: "several denials and an approval's objection, all at once", approvals: unapproved,
			policies:    policyset.Decision{Denials: []policyset.Violation{violation("owners", "no owner", "", ""), violation("sizes", "too large", "", "")}},
			wantMessage: "\n- it is not approved in namespace \"team-a\": " + unapproved.Objections[0].String() + "\n- policy owners (high): no owner\n- policy sizes (high): too large",
			wantCauses: []metav1.StatusCause{
				{Type: metav1.CauseTypeForbidden, Field: "spec.runStrategy", Message: unapproved.Objections[0].Cause().ErrorBody()},
				{Type: metav1.CauseTypeForbidden, Message: "policy owners (high): no owner"},
				{Type: metav1.CauseTypeForbidden, Message: "policy sizes (high): too large"},
			},
		},
		{
			name: "an approval's objection alone", approvals: unapproved,
			policies:     policyset.Decision{Warnings: []policyset.Violation{violation("owners", "no owner", "metadata.labels", "add one")}},
			wantMessage:  `it is not approved in namespace "team-a": ` + unapproved.Objections[0].String(),
			wantCauses:   []metav1.StatusCause{{Type: metav1.CauseTypeForbidden, Field: "spec.runStrategy", Message: unapproved.Objections[0].Cause().ErrorBody()}},
			wantWarnings: []string{"policy owners: no owner at metadata.labels; fix: add one"},
		},
		{
			name: "warnings of both, and what is only audited is not told", approvals: warned,
			policies:     policyset.Decision{Warnings: []policyset.Violation{violation("owners", "no owner", "", "")}, Audited: []policyset.Violation{violation("quiet", "psst", "", "")}},
			wantWarnings: []string{"not approved: " + unapproved.Objections[0].String(), "policy owners: no owner"},
		},
		{
			name: "a denial keeps the warnings of an approval", approvals: warned,
			policies:     policyset.Decision{Denials: []policyset.Violation{violation("sizes", "too large", "", "")}},
			wantMessage:  "policy sizes (high): too large",
			wantCauses:   []metav1.StatusCause{{Type: metav1.CauseTypeForbidden, Message: "policy sizes (high): too large"}},
			wantWarnings: []string{"not approved: " + unapproved.Objections[0].String()},
		},
		{
			name: "a policy that could not be evaluated", approvals: approval.Decision{Allowed: true},
			policies:    policyset.Decision{Denials: []policyset.Violation{failure("sizes", "it took more than 100ms")}},
			wantMessage: "policy sizes could not be evaluated: it took more than 100ms",
			wantCauses:  []metav1.StatusCause{{Type: metav1.CauseTypeForbidden, Message: "policy sizes could not be evaluated: it took more than 100ms"}},
		},
		{
			name: "several for the same reason", approvals: approval.Decision{Allowed: true},
			policies:    policyset.Decision{Denials: []policyset.Violation{failure("a", "x"), failure("b", "x"), failure("c", "x"), failure("d", "x"), failure("e", "x"), failure("f", "x"), failure("g", "y")}},
			wantMessage: "\n- policies a, b, c, d, e and 1 more could not be evaluated: x\n- policy g could not be evaluated: y",
			wantCauses: []metav1.StatusCause{
				{Type: metav1.CauseTypeForbidden, Message: "policies a, b, c, d, e and 1 more could not be evaluated: x"},
				{Type: metav1.CauseTypeForbidden, Message: "policy g could not be evaluated: y"},
			},
		},
		{
			name: "a message cannot be taken for somebody else's line", approvals: approval.Decision{Allowed: true},
			policies:    policyset.Decision{Denials: []policyset.Violation{violation("sizes", "one\n- policy other: two\x1b[31m", "", "")}},
			wantMessage: "policy sizes (high): one - policy other: two [31m",
			wantCauses:  []metav1.StatusCause{{Type: metav1.CauseTypeForbidden, Message: "policy sizes (high): one - policy other: two [31m"}},
		},
		{
			name: "rules that came with the machine, beside an objection", approvals: unapproved,
			rules: vmrules.Decision{
				Denials:     []vmrules.Finding{{Source: "template golden/box", Rule: "memory", Field: "spec.template.spec.domain.memory.guest", Message: "too small"}},
				Warnings:    []vmrules.Finding{{Source: "annotation a", Rule: "bus", Field: "spec.template.spec.domain.devices", Message: "slow"}},
				Unevaluated: []vmrules.Finding{{Source: "annotation a", Rule: "cores", Field: "spec.template.spec.domain.cpu.cores", Message: "it cannot be evaluated: no such instance type"}},
			},
			wantMessage: "\n- it is not approved in namespace \"team-a\": " + unapproved.Objections[0].String() +
				"\n- rule memory of template golden/box: too small at spec.template.spec.domain.memory.guest" +
				"\n- rule cores of annotation a: it cannot be evaluated: no such instance type at spec.template.spec.domain.cpu.cores",
			wantCauses: []metav1.StatusCause{
				{Type: metav1.CauseTypeForbidden, Field: "spec.runStrategy", Message: unapproved.Objections[0].Cause().ErrorBody()},
				{Type: metav1.CauseTypeForbidden, Field: "spec.template.spec.domain.memory.guest", Message: "rule memory of template golden/box: too small"},
				{Type: metav1.CauseTypeForbidden, Field: "spec.template.spec.domain.cpu.cores", Message: "rule cores of annotation a: it cannot be evaluated: no such instance type"},
			},
			wantWarnings: []string{"rule bus of annotation a: slow at spec.template.spec.domain.devices"},
		},
		{
			name: "rules alone that only warn", approvals: approval.Decision{Allowed: true},
			rules:        vmrules.Decision{Warnings: []vmrules.Finding{{Source: "annotation a", Rule: "bus", Field: "spec.template", Message: "slow"}}},
			wantWarnings: []string{"rule bus of annotation a: slow at spec.template"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			response := decision.Combine(request(), decision.Decisions{Approvals: tc.approvals, Policies: tc.policies, Rules: tc.rules})
			if response.Allowed != (tc.wantMessage == "") {
				t.Fatalf("allowed: %t", response.Allowed)
			}
			if diff := cmp.Diff(tc.wantWarnings, response.Warnings); diff != "" {
				t.Error(diff)
			}
			if response.Allowed {
				return
			}
			if want := `virtualmachines.kubevirt.io "web-1" is forbidden: ` + tc.wantMessage; response.Result.Message != want {
				t.Errorf("got  %q\nwant %q", response.Result.Message, want)
			}
			if response.Result.Reason != metav1.StatusReasonForbidden || response.Result.Code != 403 {
				t.Errorf("%s, %d", response.Result.Reason, response.Result.Code)
			}
			if diff := cmp.Diff(tc.wantCauses, response.Result.Details.Causes); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("of very many denials the rest is counted", func(t *testing.T) {
		response := decision.Combine(request(), decision.Decisions{Approvals: approval.Decision{Allowed: true}, Policies: many})
		if !strings.HasSuffix(response.Result.Message, "\n- policy many (high): 63\n- and 6 more") {
			t.Errorf("got %s", response.Result.Message)
		}
		if got := len(response.Result.Details.Causes); got != 64 {
			t.Errorf("%d causes", got)
		}
	})
}

func request() admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Name: "web-1", Namespace: "team-a",
		Resource: metav1.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"},
	}}
}

func TestUnavailable(t *testing.T) {
	response := decision.Unavailable("nobody is there")
	if response.Allowed || response.Result.Code != 503 || !strings.Contains(response.Result.Message, "nobody is there; try again in a moment") {
		t.Errorf("got %+v", response.Result)
	}
}
