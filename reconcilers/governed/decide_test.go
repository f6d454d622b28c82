package governed

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/reconcilers/coverage"
)

func TestDecide(t *testing.T) {
	governed := map[string]string{v1alpha1.LabelGoverned: "true"}
	approve := func(name string, change func(*v1alpha1.TemplateApprovalSpec)) coverage.Approval {
		object := &v1alpha1.TemplateApproval{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		object.Spec.Templates = []v1alpha1.ApprovedTemplate{{Namespace: "golden", Name: "fedora"}}
		change(&object.Spec)
		return coverage.Approval{Approval: coverage.Compile(object, "stencil-system"), Object: object}
	}
	byName := approve("by-name", func(s *v1alpha1.TemplateApprovalSpec) { s.Namespaces = []string{"team-a"} })
	byLabel := approve("by-label", func(s *v1alpha1.TemplateApprovalSpec) {
		s.NamespaceSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"tenant": "yes"}}
	})
	invalid := approve("invalid", func(s *v1alpha1.TemplateApprovalSpec) {
		s.Namespaces, s.Overrides = []string{"team-b"}, []string{"status"}
	})
	all := approve("all", func(s *v1alpha1.TemplateApprovalSpec) { s.NamespaceSelector = &v1alpha1.LabelSelector{} })

	for _, tc := range []struct {
		name       string
		approvals  []coverage.Approval
		namespaces []coverage.Namespace
		want       []string
	}{
		{
			name:      "a covered namespace is labelled",
			approvals: []coverage.Approval{byName},
			namespaces: []coverage.Namespace{
				{Name: "team-a"}, {Name: "team-b"},
			},
			want: []string{"team-a: covered by TemplateApproval by-name: VirtualMachines here must come from an approved template"},
		},
		{
			name:      "every approval that covers it is named",
			approvals: []coverage.Approval{byLabel, byName},
			namespaces: []coverage.Namespace{
				{Name: "team-a", Labels: map[string]string{"tenant": "yes"}},
			},
			want: []string{"team-a: covered by TemplateApproval by-label, by-name: VirtualMachines here must come from an approved template"},
		},
		{
			name:       "one that is labelled already is left alone",
			approvals:  []coverage.Approval{byName},
			namespaces: []coverage.Namespace{{Name: "team-a", Labels: governed}},
		},
		{
			name:       "another value is put right",
			approvals:  []coverage.Approval{byName},
			namespaces: []coverage.Namespace{{Name: "team-a", Labels: map[string]string{v1alpha1.LabelGoverned: "false"}}},
			want:       []string{"team-a: covered by TemplateApproval by-name: VirtualMachines here must come from an approved template"},
		},
		{
			name:      "the label goes when the last approval does, whatever its value",
			approvals: []coverage.Approval{byLabel},
			namespaces: []coverage.Namespace{
				{Name: "team-a", Labels: governed}, {Name: "team-b", Labels: map[string]string{v1alpha1.LabelGoverned: "x"}}, {Name: "team-c"},
			},
			want: []string{
				"team-a: no TemplateApproval covers this namespace any more: VirtualMachines may be created here without an approved template",
				"team-b: no TemplateApproval covers this namespace any more: VirtualMachines may be created here without an approved template",
			},
		},
		{
			name:       "an approval that cannot be understood covers its namespaces all the same",
			approvals:  []coverage.Approval{invalid},
			namespaces: []coverage.Namespace{{Name: "team-b"}},
			want:       []string{"team-b: covered by TemplateApproval invalid: VirtualMachines here must come from an approved template"},
		},
		{
			name:      "the namespaces of the system and of Stencil are never covered",
			approvals: []coverage.Approval{all},
			namespaces: []coverage.Namespace{
				{Name: "kube-system"}, {Name: "kube-public"}, {Name: "stencil-system", Labels: governed},
			},
			want: []string{"stencil-system: no TemplateApproval covers this namespace any more: VirtualMachines may be created here without an approved template"},
		},
		{
			name:      "one that is being deleted is left alone",
			approvals: []coverage.Approval{byName},
			namespaces: []coverage.Namespace{
				{Name: "team-a", Terminating: true}, {Name: "team-b", Labels: governed, Terminating: true},
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			snapshot := coverage.Snapshot{Approvals: tc.approvals, Namespaces: tc.namespaces}
			var got []string
			for _, c := range decide(snapshot.Namespaces, snapshot.Governed()) {
				got = append(got, c.namespace+": "+c.note())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatSeveralApprovalsList(t *testing.T) {
	approve := func(name string, change func(*v1alpha1.TemplateApprovalSpec)) coverage.Approval {
		object := &v1alpha1.TemplateApproval{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		object.Spec.Namespaces = []string{"team-a"}
		change(&object.Spec)
		return coverage.Approval{Approval: coverage.Compile(object), Object: object}
	}
	listing := func(name string, entries ...v1alpha1.ApprovedTemplate) coverage.Approval {
		return approve(name, func(s *v1alpha1.TemplateApprovalSpec) { s.Templates = entries })
	}
	many := func(name string, namespaces int) coverage.Approval {
		return approve(name, func(s *v1alpha1.TemplateApprovalSpec) {
			for i := range 1000 {
				s.Templates = append(s.Templates, v1alpha1.ApprovedTemplate{
					Namespace: fmt.Sprintf("golden-%04d-%s", i%namespaces, strings.Repeat("n", 40)), Name: fmt.Sprintf("t%d", i),
				})
			}
		})
	}
	named := listing("named", v1alpha1.ApprovedTemplate{Namespace: "golden", Name: "ubuntu"}, v1alpha1.ApprovedTemplate{Namespace: "golden", Name: "fedora"})
	selected := listing("selected", v1alpha1.ApprovedTemplate{Namespace: "silver", Selector: &v1alpha1.LabelSelector{}}, v1alpha1.ApprovedTemplate{Namespace: "golden", Name: "fedora"})
	closed := approve("closed", func(s *v1alpha1.TemplateApprovalSpec) {
		s.Templates, s.Overrides = []v1alpha1.ApprovedTemplate{{Namespace: "golden", Name: "windows"}}, []string{"status"}
	})
	governed := map[string]string{v1alpha1.LabelGoverned: "true"}

	for _, tc := range []struct {
		name      string
		approvals []coverage.Approval
		stored    string
		want      []string
	}{
		{name: "one alone needs no list", approvals: []coverage.Approval{named}},
		{name: "a list that is not needed any more goes", approvals: []coverage.Approval{named}, stored: "golden/fedora", want: []string{""}},
		{name: "two have one in common", approvals: []coverage.Approval{named, selected}, want: []string{"golden/fedora,golden/ubuntu,silver/*"}},
		{name: "the same list is left alone", approvals: []coverage.Approval{named, selected}, stored: "golden/fedora,golden/ubuntu,silver/*"},
		{name: "another is put right", approvals: []coverage.Approval{named, selected}, stored: "*", want: []string{"golden/fedora,golden/ubuntu,silver/*"}},
		{name: "a closed one lists nothing", approvals: []coverage.Approval{closed, named}, want: []string{"golden/fedora,golden/ubuntu"}},
		{name: "a list that is too long names namespaces", approvals: []coverage.Approval{many("many", 1), named}, want: []string{"golden-0000-" + strings.Repeat("n", 40) + "/*,golden/*"}},
		{name: "or everything", approvals: []coverage.Approval{many("many", 1000), named}, want: []string{"*"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			snapshot := coverage.Snapshot{Approvals: tc.approvals, Namespaces: []coverage.Namespace{{Name: "team-a", Labels: governed, ApprovedTemplates: tc.stored}}}
			var got []string
			for _, c := range decide(snapshot.Namespaces, snapshot.Governed()) {
				got = append(got, c.approved)
				if c.relabelled || !c.governed {
					t.Errorf("the label is concerned as well: %+v", c)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("lists (-want +got):\n%s", diff)
			}
		})
	}
}

func TestANoteNamesFewApprovals(t *testing.T) {
	c := change{governed: true, by: slices.Repeat([]string{"x"}, maximumNames+2)}
	if got := c.note(); !strings.Contains(got, "x, x, x, x, x and 2 more:") {
		t.Error(got)
	}
}
