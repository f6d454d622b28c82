package governed

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
)

// approve returns an approval that lists golden/fedora, changed by change.
func approve(name string, change func(*v1alpha1.TemplateApprovalSpec)) coverage.Approval {
	object := &v1alpha1.TemplateApproval{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	object.Spec.Templates = []v1alpha1.ApprovedTemplate{{Namespace: "golden", Name: "fedora"}}
	change(&object.Spec)
	return coverage.Approval{Approval: coverage.Compile(object, "stencil-system"), Object: object}
}

// namespace returns a namespace with the annotation, and with the label unless governed is empty.
func namespace(name, governed, approvals string) coverage.Namespace {
	n := coverage.Namespace{Name: name, Approvals: approvals, ResourceVersion: "7"}
	if governed != "" {
		n.Labels = map[string]string{v1alpha1.LabelGoverned: governed}
	}
	return n
}

func TestDecide(t *testing.T) {
	byName := approve("by-name", func(s *v1alpha1.TemplateApprovalSpec) { s.Namespaces = []string{"team-a"} })
	byLabel := approve("by-label", func(s *v1alpha1.TemplateApprovalSpec) {
		s.NamespaceSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"tenant": "yes"}}
	})
	invalid := approve("invalid", func(s *v1alpha1.TemplateApprovalSpec) {
		s.Namespaces, s.Overrides = []string{"team-b"}, []string{"status"}
	})
	all := approve("all", func(s *v1alpha1.TemplateApprovalSpec) { s.NamespaceSelector = &v1alpha1.LabelSelector{} })
	warns := approve("warns", func(s *v1alpha1.TemplateApprovalSpec) {
		s.Namespaces, s.Enforcement = []string{"team-a"}, v1alpha1.EnforcementWarn
	})
	audits := approve("audits", func(s *v1alpha1.TemplateApprovalSpec) {
		s.Namespaces, s.Enforcement = []string{"team-a"}, v1alpha1.EnforcementAudit
	})
	const (
		covered    = ": VirtualMachines here must come from an approved template"
		notAnyMore = "no TemplateApproval selects this namespace any more: VirtualMachines may be created here without an approved template"
	)
	tenant := func(n coverage.Namespace) coverage.Namespace {
		n.Labels = maps.Clone(n.Labels)
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels["tenant"] = "yes"
		return n
	}
	terminating := func(n coverage.Namespace) coverage.Namespace {
		n.Terminating = true
		return n
	}

	for _, tc := range []struct {
		name       string
		approvals  []coverage.Approval
		namespaces []coverage.Namespace
		// want lists each change as NAMESPACE LABEL ANNOTATION NOTE.
		want []string
	}{
		{
			name:      "a namespace that no approval covers is decided, without an event",
			approvals: []coverage.Approval{byName},
			namespaces: []coverage.Namespace{
				namespace("team-a", "", ""), namespace("team-b", "", ""),
			},
			want: []string{
				"team-a true 1;by-name;;golden/fedora selected by TemplateApproval by-name" + covered,
				"team-b false  ",
			},
		},
		{
			name: "so are all of them when there is no approval, those of the system too",
			namespaces: []coverage.Namespace{
				namespace("default", "", ""), namespace("kube-system", "", ""), namespace("stencil-system", "", ""),
			},
			want: []string{"default false  ", "kube-system false  ", "stencil-system false  "},
		},
		{
			name:      "those of the system and of Stencil are never covered",
			approvals: []coverage.Approval{all},
			namespaces: []coverage.Namespace{
				namespace("kube-public", "false", ""), namespace("kube-system", "", ""), namespace("stencil-system", "true", "1;all;;golden/fedora"),
			},
			want: []string{"kube-system false  ", "stencil-system false  " + notAnyMore},
		},
		{
			name:       "every approval that covers it is named",
			approvals:  []coverage.Approval{byLabel, byName},
			namespaces: []coverage.Namespace{tenant(namespace("team-a", "", ""))},
			want:       []string{"team-a true 1;by-label, by-name;;golden/fedora selected by TemplateApproval by-label, by-name" + covered},
		},
		{
			name:       "one whose label and annotation are right is left alone",
			approvals:  []coverage.Approval{byName},
			namespaces: []coverage.Namespace{namespace("team-a", "true", "1;by-name;;golden/fedora"), namespace("team-b", "false", "")},
		},
		{
			name:       "another value is put right",
			approvals:  []coverage.Approval{byName},
			namespaces: []coverage.Namespace{namespace("team-a", "false", "1;by-name;;golden/fedora"), namespace("team-b", "x", "")},
			want: []string{
				"team-a true 1;by-name;;golden/fedora selected by TemplateApproval by-name" + covered,
				"team-b false  " + notAnyMore,
			},
		},
		{
			name:       "an annotation that is stale is written, without an event",
			approvals:  []coverage.Approval{byName},
			namespaces: []coverage.Namespace{namespace("team-a", "true", "1;by-name;;golden/fedora,golden/ubuntu")},
			want:       []string{"team-a true 1;by-name;;golden/fedora "},
		},
		{
			name:       "so is one that is missing",
			approvals:  []coverage.Approval{byName},
			namespaces: []coverage.Namespace{namespace("team-a", "true", "")},
			want:       []string{"team-a true 1;by-name;;golden/fedora "},
		},
		{
			name:       "one that is not needed goes",
			namespaces: []coverage.Namespace{namespace("team-a", "false", "1;by-name;;golden/fedora")},
			want:       []string{"team-a false  "},
		},
		{
			name:       "when the last approval goes, so does the annotation",
			approvals:  []coverage.Approval{byLabel},
			namespaces: []coverage.Namespace{namespace("team-a", "true", "1;by-name;;golden/fedora")},
			want:       []string{"team-a false  " + notAnyMore},
		},
		{
			name:       "an approval that warns needs no annotation",
			approvals:  []coverage.Approval{audits, warns},
			namespaces: []coverage.Namespace{namespace("team-a", "true", "1;by-name;;golden/fedora")},
			want:       []string{"team-a warn  selected by TemplateApproval audits, warns: VirtualMachines that are not approved are answered with a warning here"},
		},
		{
			name:       "nor does one that audits",
			approvals:  []coverage.Approval{audits},
			namespaces: []coverage.Namespace{namespace("team-a", "", "")},
			want:       []string{"team-a audit  selected by TemplateApproval audits: VirtualMachines that are not approved are counted here"},
		},
		{
			name:       "an approval that cannot be understood covers its namespaces all the same",
			approvals:  []coverage.Approval{invalid},
			namespaces: []coverage.Namespace{namespace("team-b", "", "")},
			want:       []string{"team-b true 1;invalid;; selected by TemplateApproval invalid" + covered},
		},
		{
			name:      "one that is being deleted is left alone",
			approvals: []coverage.Approval{byName},
			namespaces: []coverage.Namespace{
				terminating(namespace("team-a", "", "")), terminating(namespace("team-b", "true", "1;x;;")),
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			decided := decide(coverage.Snapshot{Approvals: tc.approvals, Namespaces: tc.namespaces})
			var got []string
			for _, c := range decided.changes {
				got = append(got, strings.Join([]string{c.namespace, c.state.Governed, c.state.Approvals, c.note()}, " "))
				if c.resourceVersion != "7" {
					t.Errorf("%s is written without its resource version", c.namespace)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if len(decided.omitted) > 0 {
				t.Errorf("omitted: %v", decided.omitted)
			}
		})
	}
}

func TestDecideTellsForWhichApprovalANamespaceHasNoRoom(t *testing.T) {
	large := func(name string, namespaces ...string) coverage.Approval {
		return approve(name, func(s *v1alpha1.TemplateApprovalSpec) {
			s.Namespaces, s.Templates = namespaces, nil
			for i := range 200 {
				s.Templates = append(s.Templates, v1alpha1.ApprovedTemplate{Namespace: "golden", Name: fmt.Sprintf("%s%03d%s", name, i, strings.Repeat("x", 193))})
			}
		})
	}
	// The annotations of team-b and team-c have room for one of the two approvals.
	approvals := []coverage.Approval{large("a", "team-a", "team-b", "team-c"), large("b", "team-b", "team-c", "team-d")}
	namespaces := []coverage.Namespace{namespace("team-a", "", ""), namespace("team-b", "", ""), namespace("team-c", "", ""), namespace("team-d", "", "")}
	decided := decide(coverage.Snapshot{Approvals: approvals, Namespaces: namespaces})
	if diff := cmp.Diff(map[string]string{"b": "team-b"}, decided.omitted); diff != "" {
		t.Errorf("omitted (-want +got):\n%s", diff)
	}
	if len(decided.changes) != 4 {
		t.Fatalf("%d changes", len(decided.changes))
	}
	// It stays omitted when nothing is to be written.
	for i := range namespaces {
		namespaces[i] = namespace(namespaces[i].Name, decided.changes[i].state.Governed, decided.changes[i].state.Approvals)
	}
	decided = decide(coverage.Snapshot{Approvals: approvals, Namespaces: namespaces})
	if len(decided.changes) > 0 || decided.omitted["b"] != "team-b" {
		t.Errorf("%d changes, omitted %v", len(decided.changes), decided.omitted)
	}
}

func TestANoteNamesFewApprovals(t *testing.T) {
	x := approve("x", func(s *v1alpha1.TemplateApprovalSpec) { s.Namespaces = []string{"team-a"} }).Approval
	c := change{state: approval.NamespaceState{Governed: "true"}, approvals: slices.Repeat([]*approval.Approval{x}, maximumNames+2)}
	if got := c.note(); !strings.Contains(got, "x, x, x, x, x and 2 more:") {
		t.Error(got)
	}
}
