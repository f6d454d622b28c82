package governed

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
)

func TestPendingOf(t *testing.T) {
	everywhere := approve("everywhere", func(s *v1alpha1.TemplateApprovalSpec) { s.NamespaceSelector = &v1alpha1.LabelSelector{} })
	one := approve("one", func(s *v1alpha1.TemplateApprovalSpec) { s.Namespaces = []string{"team-a"} })
	none := approve("none", func(s *v1alpha1.TemplateApprovalSpec) { s.Namespaces = []string{"team-x"} })
	decided := decide(coverage.Snapshot{
		Approvals: []coverage.Approval{everywhere, none, one},
		Namespaces: []coverage.Namespace{
			namespace("kube-system", "", ""), namespace("team-a", "", ""), namespace("team-b", "", ""), namespace("team-c", "true", "1;everywhere;;golden/fedora"),
			namespace("team-d", "true", "1;everywhere, gone;;golden/fedora"),
		},
	})
	if diff := cmp.Diff(map[string]int{"everywhere": 3, "one": 1}, pendingOf(decided.changes, nil)); diff != "" {
		t.Errorf("namespaces to be written (-want +got):\n%s", diff)
	}
	// An approval that is active does not wait for team-d, which was governed before.
	if diff := cmp.Diff(map[string]int{"everywhere": 2, "one": 1}, pendingOf(decided.changes, map[string]bool{"everywhere": true})); diff != "" {
		t.Errorf("namespaces to be written for the first time (-want +got):\n%s", diff)
	}
	if got := pendingOf(nil, nil); len(got) > 0 {
		t.Errorf("without changes %v are pending", got)
	}
}

func TestActive(t *testing.T) {
	const tooLarge = "namespace team-a has no room for it beside the older approvals that select the namespace (64 KiB, 512 subjects and 512 exempt subjects): " +
		"admission policies approve nothing by it there; shorten the lists of templates, subjects and exemptSubjects"
	condition := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: "Active", Status: status, Reason: reason, ObservedGeneration: 3, Message: message}
	}
	for _, tc := range []struct {
		name    string
		pending int
		full    string
		want    metav1.Condition
	}{
		{
			name: "every namespace carries it",
			want: condition(metav1.ConditionTrue, v1alpha1.ReasonActive, "every namespace that it selects carries it"),
		},
		{
			name: "some do not", pending: 3,
			want: condition(metav1.ConditionFalse, "WritingNamespaces", "3 namespaces do not carry it yet; what was enforced in them before is enforced until then"),
		},
		{name: "one has no room for it", full: "team-a", want: condition(metav1.ConditionFalse, "TooLarge", tooLarge)},
		{
			name: "waiting does not help where there is no room", pending: 3, full: "team-a",
			want: condition(metav1.ConditionFalse, "TooLarge", tooLarge),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, active(3, tc.pending, tc.full)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}
