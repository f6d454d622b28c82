package audit

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func readyCondition(generation int64, status metav1.ConditionStatus, reason, message string) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message, ObservedGeneration: generation}}
}

func TestStatusOf(t *testing.T) {
	violations := []v1alpha1.Violation{{Namespace: "team-a", Name: "web", Cause: "no"}}
	audited := func(at time.Time) *lastResult {
		return &lastResult{generation: 1, count: count{conforming: 3, violating: 1, violations: violations}, at: at}
	}
	enforced := readyCondition(1, metav1.ConditionTrue, v1alpha1.ReasonEnforced, "it is enforced")
	full := v1alpha1.TemplateApprovalStatus{
		ObservedGeneration: 1, Templates: ptr.To[int32](2), Namespaces: ptr.To[int32](1),
		Conforming: ptr.To[int32](3), Violating: ptr.To[int32](1), Violations: violations,
		LastAuditTime: &metav1.Time{Time: noon}, Conditions: enforced,
	}
	with := func(base v1alpha1.TemplateApprovalStatus, change func(*v1alpha1.TemplateApprovalStatus)) v1alpha1.TemplateApprovalStatus {
		next := *base.DeepCopy()
		change(&next)
		return next
	}
	for _, tc := range []struct {
		name        string
		stored      v1alpha1.TemplateApprovalStatus
		observation observation
		want        v1alpha1.TemplateApprovalStatus
	}{
		{
			name:        "before the first audit nothing is counted",
			observation: observation{generation: 1, templates: 2, namespaces: 1},
			want:        v1alpha1.TemplateApprovalStatus{ObservedGeneration: 1, Templates: ptr.To[int32](2), Namespaces: ptr.To[int32](1), Conditions: enforced},
		},
		{
			name:        "an audit brings its counts and its time",
			observation: observation{generation: 1, templates: 2, namespaces: 1, audited: audited(noon)},
			want:        full,
		},
		{
			name:        "an audit that finds the same does not change the time, so that nothing is written",
			stored:      full,
			observation: observation{generation: 1, templates: 2, namespaces: 1, audited: audited(noon.Add(time.Hour))},
			want:        full,
		},
		{
			name:        "an audit that finds anything else does",
			stored:      full,
			observation: observation{generation: 1, templates: 2, namespaces: 1, audited: &lastResult{generation: 1, count: count{conforming: 4}, at: noon.Add(time.Hour)}},
			want: with(full, func(s *v1alpha1.TemplateApprovalStatus) {
				s.Conforming, s.Violating, s.Violations = ptr.To[int32](4), ptr.To[int32](0), nil
				s.LastAuditTime = &metav1.Time{Time: noon.Add(time.Hour)}
			}),
		},
		{
			name:        "a new leader that has not audited yet leaves what was counted",
			stored:      full,
			observation: observation{generation: 1, templates: 2, namespaces: 1},
			want:        full,
		},
		{
			name:        "what was counted by another spec goes",
			stored:      full,
			observation: observation{generation: 2, templates: 5, namespaces: 1},
			want: v1alpha1.TemplateApprovalStatus{
				ObservedGeneration: 2, Templates: ptr.To[int32](5), Namespaces: ptr.To[int32](1),
				Conditions: readyCondition(2, metav1.ConditionTrue, v1alpha1.ReasonEnforced, "it is enforced"),
			},
		},
		{
			name:        "an approval that does not compile is not ready, whatever it covers",
			observation: observation{generation: 1, namespaces: 3, invalid: errors.New("spec.overrides[0]: bad"), auditFailure: errors.New("x")},
			want: v1alpha1.TemplateApprovalStatus{
				ObservedGeneration: 1, Templates: ptr.To[int32](0), Namespaces: ptr.To[int32](3),
				Conditions: readyCondition(1, metav1.ConditionFalse, v1alpha1.ReasonInvalidConfiguration, "it approves nothing until this is corrected: spec.overrides[0]: bad"),
			},
		},
		{
			name:        "one that covers nothing is not ready",
			observation: observation{generation: 1, templates: 1},
			want: v1alpha1.TemplateApprovalStatus{
				ObservedGeneration: 1, Templates: ptr.To[int32](1), Namespaces: ptr.To[int32](0),
				Conditions: readyCondition(1, metav1.ConditionFalse, v1alpha1.ReasonNoNamespaces, "it selects no namespace that exists"),
			},
		},
		{
			name:        "one that approves nothing that exists is not ready",
			observation: observation{generation: 1, namespaces: 1},
			want: v1alpha1.TemplateApprovalStatus{
				ObservedGeneration: 1, Templates: ptr.To[int32](0), Namespaces: ptr.To[int32](1),
				Conditions: readyCondition(1, metav1.ConditionFalse, v1alpha1.ReasonNoTemplates, "it approves no template that exists and is valid, so that nothing satisfies it"),
			},
		},
		{
			name:        "one that closes a parameter without which nothing can be created is not ready",
			observation: observation{generation: 1, namespaces: 1, templates: 2, unusable: []string{"template golden/a (KEY)", "template golden/b (KEY, SEED)"}},
			want: v1alpha1.TemplateApprovalStatus{
				ObservedGeneration: 1, Templates: ptr.To[int32](2), Namespaces: ptr.To[int32](1),
				Conditions: readyCondition(1, metav1.ConditionFalse, v1alpha1.ReasonRequiredParameterClosed,
					"no VirtualMachine can be created from template golden/a (KEY), template golden/b (KEY, SEED): list these required parameters, for which the template has no value, in spec.parameters, with the values that are allowed or with anyValue: true"),
			},
		},
		{
			name: "an audit brings its warnings",
			observation: observation{generation: 1, templates: 2, namespaces: 1, audited: &lastResult{
				generation: 1, count: count{conforming: 3, violating: 1, violations: violations, warned: 1, warnings: violations}, at: noon,
			}},
			want: with(full, func(s *v1alpha1.TemplateApprovalStatus) { s.Warned, s.Warnings = 1, violations }),
		},
		{
			name:        "a failed audit is told, and leaves what was counted",
			stored:      full,
			observation: observation{generation: 1, templates: 2, namespaces: 1, auditFailure: errors.New("forbidden")},
			want: with(full, func(s *v1alpha1.TemplateApprovalStatus) {
				s.Conditions = readyCondition(1, metav1.ConditionTrue, v1alpha1.ReasonAuditFailed, "it is enforced; what is stored could not be audited: forbidden")
			}),
		},
		{
			name: "the next audit that does not fail puts that right, even when it finds the same",
			stored: with(full, func(s *v1alpha1.TemplateApprovalStatus) {
				s.Conditions = readyCondition(1, metav1.ConditionTrue, v1alpha1.ReasonAuditFailed, "…")
			}),
			observation: observation{generation: 1, templates: 2, namespaces: 1, audited: audited(noon.Add(time.Hour))},
			want:        with(full, func(s *v1alpha1.TemplateApprovalStatus) { s.LastAuditTime = &metav1.Time{Time: noon.Add(time.Hour)} }),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := tc.stored.DeepCopy()
			got := statusOf(tc.stored, tc.observation)
			ignoreTransition := cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")
			if diff := cmp.Diff(tc.want, got, ignoreTransition, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(*before, tc.stored); diff != "" {
				t.Errorf("the stored status has changed:\n%s", diff)
			}
			if diff := cmp.Diff(got, statusOf(got, tc.observation)); diff != "" {
				t.Errorf("the same observation changes the status again:\n%s", diff)
			}
		})
	}
}

func TestTemplatesThatAnApprovalMakesUnusable(t *testing.T) {
	templates := []*templatecache.Template{
		shelve(t, strings.ReplaceAll(fedora, "name: MEMORY, value: 1Gi", "name: MEMORY, required: true")),
		shelve(t, strings.Replace(fedora, "name: fedora", "name: ubuntu", 1)),
	}
	list := func(parameters ...v1alpha1.ParameterConstraint) func(*v1alpha1.TemplateApproval) {
		return func(a *v1alpha1.TemplateApproval) {
			a.Spec.Templates, a.Spec.Parameters = []v1alpha1.ApprovedTemplate{{Namespace: "golden", Selector: &v1alpha1.LabelSelector{}}}, parameters
		}
	}
	got := countTemplates([]coverage.Approval{
		{Approval: approve("closing", list())},
		{Approval: approve("opening", list(v1alpha1.ParameterConstraint{Name: "MEMORY", AnyValue: true}))},
		{Approval: approve("narrowing", list(v1alpha1.ParameterConstraint{Name: "MEMORY", Allowed: []string{"1Gi"}}))},
	}, templates)
	want := map[string]approvedTemplates{
		"closing": {templates: 2, unusable: []string{"template golden/fedora (MEMORY)"}}, "opening": {templates: 2}, "narrowing": {templates: 2},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(approvedTemplates{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNotes(t *testing.T) {
	enforced := readyCondition(1, metav1.ConditionTrue, v1alpha1.ReasonEnforced, "it is enforced")
	noTemplates := readyCondition(1, metav1.ConditionFalse, v1alpha1.ReasonNoTemplates, "nothing")
	status := func(conditions []metav1.Condition, violating *int32) v1alpha1.TemplateApprovalStatus {
		s := v1alpha1.TemplateApprovalStatus{Conditions: conditions, Violating: violating}
		if ptr.Deref(violating, 0) > 0 {
			s.Violations = []v1alpha1.Violation{{Namespace: "team-a", Name: "web", Cause: "it names no template"}}
		}
		return s
	}
	for _, tc := range []struct {
		name          string
		before, after v1alpha1.TemplateApprovalStatus
		want          []string
	}{
		{"the first state is told", status(nil, nil), status(enforced, nil), []string{"Normal Enforced it is enforced"}},
		{"the same state is not told again", status(enforced, ptr.To[int32](0)), status(enforced, ptr.To[int32](0)), nil},
		{"a state that asks for attention is a warning", status(enforced, nil), status(noTemplates, nil), []string{"Warning NoTemplates nothing"}},
		{"the first violations are told", status(enforced, ptr.To[int32](0)), status(enforced, ptr.To[int32](2)), []string{
			"Warning ViolationsFound 2 VirtualMachines are not approved, team-a/web first: it names no template"}},
		{"more violations are not", status(enforced, ptr.To[int32](2)), status(enforced, ptr.To[int32](3)), nil},
		{"their end is", status(enforced, ptr.To[int32](2)), status(enforced, ptr.To[int32](0)), []string{"Normal NoViolationsLeft every VirtualMachine is approved"}},
		{"that nothing is counted any more is not", status(enforced, ptr.To[int32](2)), status(enforced, nil), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, n := range notes(tc.before, tc.after) {
				got = append(got, strings.Join([]string{n.kind, n.reason, n.message}, " "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}
