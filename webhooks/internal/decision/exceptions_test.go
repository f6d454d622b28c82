package decision_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/webhooks/internal/decision"
)

func TestExceptionsAreWarnings(t *testing.T) {
	exception := policyset.NewException(&v1alpha1.PolicyException{
		ObjectMeta: metav1.ObjectMeta{Name: "legacy"},
		Spec:       v1alpha1.PolicyExceptionSpec{Reason: "secret plans", ExpiresAt: metav1.NewTime(time.Date(2026, 12, 1, 1, 0, 0, 0, time.FixedZone("", 3600)))},
	})
	excepted := func(policy string, effect policyset.Enforcement) policyset.Excepted {
		return policyset.Excepted{Violation: violation(policy, "8 CPUs are too many", "spec.instancetype", "take u1.small"), Enforcement: effect, Exception: exception}
	}
	const text = "policy sizes is violated, which PolicyException legacy allows until 2026-12-01T00:00:00Z"
	for _, tc := range []struct {
		name            string
		policies        policyset.Decision
		wantAllowed     bool
		wantWarnings    []string
		wantAnnotations map[string]string
	}{
		{
			name: "one warning for all that a policy found", wantAllowed: true,
			policies:     policyset.Decision{Excepted: []policyset.Excepted{excepted("sizes", "Deny"), excepted("sizes", "Deny"), excepted("sizes", "Warn")}},
			wantWarnings: []string{text}, wantAnnotations: map[string]string{"policy-exceptions": "sizes=legacy"},
		},
		{
			name: "what is only audited is not told", wantAllowed: true,
			policies:        policyset.Decision{Excepted: []policyset.Excepted{excepted("quiet", "Audit")}},
			wantAnnotations: map[string]string{"policy-exceptions": "quiet=legacy"},
		},
		{
			name: "after other warnings", wantAllowed: true,
			policies:     policyset.Decision{Warnings: []policyset.Violation{violation("owners", "no owner", "", "")}, Excepted: []policyset.Excepted{excepted("sizes", "Warn"), excepted("more", "Audit")}},
			wantWarnings: []string{"policy owners: no owner", text}, wantAnnotations: map[string]string{"policy-exceptions": "sizes=legacy,more=legacy"},
		},
		{
			name:         "beside a denial",
			policies:     policyset.Decision{Denials: []policyset.Violation{violation("owners", "no owner", "", "")}, Excepted: []policyset.Excepted{excepted("sizes", "Deny")}},
			wantWarnings: []string{text},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			response := decision.Combine(request(), decision.Decisions{Approvals: approval.Decision{Allowed: true}, Policies: tc.policies})
			if response.Allowed != tc.wantAllowed {
				t.Errorf("allowed: %t", response.Allowed)
			}
			if diff := cmp.Diff(tc.wantWarnings, response.Warnings); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantAnnotations, response.AuditAnnotations); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
