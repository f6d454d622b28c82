package approval_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
)

func TestStateOf(t *testing.T) {
	approve := func(name, spec string) *approval.Approval { return compile(t, name, spec) }
	closed := func(name, spec string) *approval.Approval {
		return approval.Closed(object(t, name, spec), errors.New("not valid"))
	}
	alice := `{kind: User, name: alice}`
	bob := `{kind: User, name: bob}`
	staff := `{kind: Group, name: staff}`

	for _, tc := range []struct {
		name         string
		approvals    []*approval.Approval
		wantGoverned string
		want         string
	}{
		{name: "no approval", wantGoverned: "false"},
		{name: "one that warns", approvals: []*approval.Approval{approve("a", "enforcement: Warn")}, wantGoverned: "warn"},
		{name: "one that audits", approvals: []*approval.Approval{approve("a", "enforcement: Audit")}, wantGoverned: "audit"},
		{
			name:         "warning is stricter than auditing",
			approvals:    []*approval.Approval{approve("a", "enforcement: Audit"), approve("b", "enforcement: Warn")},
			wantGoverned: "warn",
		},
		{
			name:         "one that denies approves for everyone",
			approvals:    []*approval.Approval{approve("a", "")},
			wantGoverned: "true", want: "1;a;;golden/fedora",
		},
		{
			name:         "what one that warns lists is approved beside one that denies",
			approvals:    []*approval.Approval{approve("b", "enforcement: Warn\ntemplates: [{namespace: golden, name: ubuntu}]"), approve("a", "")},
			wantGoverned: "true", want: "1;a, b;;golden/fedora,golden/ubuntu",
		},
		{
			name: "whom one that warns exempts does not matter where one denies",
			approvals: []*approval.Approval{
				approve("a", "exemptSubjects: ["+alice+"]"),
				approve("b", "enforcement: Warn\nexemptSubjects: ["+bob+"]"),
				approve("c", "enforcement: Audit"),
			},
			wantGoverned: "true", want: "1;a, b, c;u:alice;golden/fedora",
		},
		{
			name:         "templates are sorted, listed once, and all of a namespace where labels choose them",
			approvals:    []*approval.Approval{approve("a", "templates: [{namespace: silver, selector: {}}, {namespace: golden, name: fedora}, {namespace: golden, name: fedora, digest: 'sha256:"+strings.Repeat("0", 64)+"'}]")},
			wantGoverned: "true", want: "1;a;;golden/fedora,silver/*",
		},
		{
			name: "subjects",
			approvals: []*approval.Approval{
				approve("a", "subjects: ["+staff+", "+alice+", {kind: ServiceAccount, namespace: ci, name: builder}]"),
			},
			wantGoverned: "true", want: "1;a;;golden/fedora>g:staff,u:alice,u:system:serviceaccount:ci:builder",
		},
		{
			name: "templates for the same subjects stand together",
			approvals: []*approval.Approval{
				approve("a", "subjects: ["+alice+", "+bob+"]"),
				approve("b", "subjects: ["+bob+", "+alice+"]\ntemplates: [{namespace: golden, name: debian}]"),
				approve("c", "templates: [{namespace: silver, name: windows}]"),
			},
			wantGoverned: "true", want: "1;a, b, c;;golden/debian,golden/fedora>u:alice,u:bob|silver/windows",
		},
		{
			name:         "exempt subjects",
			approvals:    []*approval.Approval{approve("a", "exemptSubjects: ["+staff+", "+alice+"]")},
			wantGoverned: "true", want: "1;a;g:staff,u:alice;golden/fedora",
		},
		{
			name: "each approval that denies has its section of exempt subjects",
			approvals: []*approval.Approval{
				approve("a", "exemptSubjects: ["+bob+", "+staff+"]"),
				approve("b", "exemptSubjects: ["+alice+"]"),
			},
			wantGoverned: "true", want: "1;a, b;g:staff,u:bob|u:alice;golden/fedora",
		},
		{
			name: "equal sections are written once",
			approvals: []*approval.Approval{
				approve("a", "exemptSubjects: ["+bob+", "+alice+"]"),
				approve("b", "exemptSubjects: ["+alice+", "+bob+"]"),
			},
			wantGoverned: "true", want: "1;a, b;u:alice,u:bob;golden/fedora",
		},
		{
			name:         "one that denies and exempts no one leaves no one exempt",
			approvals:    []*approval.Approval{approve("a", "exemptSubjects: ["+alice+"]"), approve("b", "")},
			wantGoverned: "true", want: "1;a, b;;golden/fedora",
		},
		{
			name:         "one that is closed lists nothing and exempts whom it exempts",
			approvals:    []*approval.Approval{closed("a", "exemptSubjects: ["+alice+"]\noverrides: [status]")},
			wantGoverned: "true", want: "1;a;u:alice;",
		},
		{
			name:         "one that is closed leaves what others approve",
			approvals:    []*approval.Approval{closed("a", "templates: [{namespace: silver, selector: {}}]"), approve("b", "")},
			wantGoverned: "true", want: "1;a, b;;golden/fedora",
		},
		{
			name:         "one whose subjects are of no known kind serves no one",
			approvals:    []*approval.Approval{closed("a", "subjects: [{kind: Robot, name: r2}]")},
			wantGoverned: "true", want: "1;a;;",
		},
		{
			name: "reserved characters are percent-encoded",
			approvals: []*approval.Approval{
				approve("a", `{subjects: [{kind: User, name: "a%2C,;|>ä b"}], exemptSubjects: [{kind: Group, name: "cn=x,ou=y;z|%>"}]}`),
			},
			wantGoverned: "true", want: "1;a;g:cn=x%2Cou=y%3Bz%7C%25%3E;golden/fedora>u:a%252C%2C%3B%7C%3Eä b",
		},
		{
			name:         "three approvals are named",
			approvals:    []*approval.Approval{approve("c", ""), approve("b", ""), approve("a", "")},
			wantGoverned: "true", want: "1;a, b, c;;golden/fedora",
		},
		{
			name:         "more are counted",
			approvals:    []*approval.Approval{approve("e", ""), approve("d", ""), approve("c", ""), approve("b", ""), approve("a", "")},
			wantGoverned: "true", want: "1;a, b, c and 2 more;;golden/fedora",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := approval.StateOf(tc.approvals)
			if got.Governed != tc.wantGoverned || got.Approvals != tc.want || len(got.Omitted) > 0 {
				t.Errorf("got  %s %q, %d omitted\nwant %s %q", got.Governed, got.Approvals, len(got.Omitted), tc.wantGoverned, tc.want)
			}
		})
	}
}

// Three limits: 64 KiB, 512 subjects and 512 exempt subjects.
func TestStateHasLimits(t *testing.T) {
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	// aged is an approval that was made so many hours before noon.
	aged := func(name string, hours int, change func(*v1alpha1.TemplateApprovalSpec)) *approval.Approval {
		o := object(t, name, "{}")
		o.CreationTimestamp = metav1.Time{Time: noon.Add(-time.Duration(hours) * time.Hour)}
		change(&o.Spec)
		a, err := approval.Compile(o)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	nothing := func(*v1alpha1.TemplateApprovalSpec) {}
	// templates lists so many bytes of templates, without the commas between them.
	templates := func(prefix string, bytes int) func(*v1alpha1.TemplateApprovalSpec) {
		return func(s *v1alpha1.TemplateApprovalSpec) {
			s.Templates = nil
			for i := range bytes / 256 {
				name := fmt.Sprintf("%s%04d", prefix, i)
				s.Templates = append(s.Templates, v1alpha1.ApprovedTemplate{Namespace: "golden", Name: name + strings.Repeat("x", 256-len("golden/")-len(name))})
			}
		}
	}
	people := func(prefix string, count int) []v1alpha1.Subject {
		var listed []v1alpha1.Subject
		for i := range count {
			listed = append(listed, v1alpha1.Subject{Kind: v1alpha1.SubjectKindUser, Name: fmt.Sprintf("%s%d", prefix, i)})
		}
		return listed
	}
	serving := func(prefix string, count int) func(*v1alpha1.TemplateApprovalSpec) {
		return func(s *v1alpha1.TemplateApprovalSpec) { s.Subjects = people(prefix, count) }
	}
	exempting := func(prefix string, count int) func(*v1alpha1.TemplateApprovalSpec) {
		return func(s *v1alpha1.TemplateApprovalSpec) { s.ExemptSubjects = people(prefix, count) }
	}
	warning := func(change func(*v1alpha1.TemplateApprovalSpec)) func(*v1alpha1.TemplateApprovalSpec) {
		return func(s *v1alpha1.TemplateApprovalSpec) {
			change(s)
			s.Enforcement = v1alpha1.EnforcementWarn
		}
	}

	for _, tc := range []struct {
		name      string
		approvals []*approval.Approval
		omitted   []string
		// start and end are of the annotation.
		start, end string
	}{
		{
			name:      "63 KiB fit",
			approvals: []*approval.Approval{aged("a", 1, templates("a", 63<<10))},
			start:     "1;a;;golden/a0000x",
		},
		{
			name:      "more do not, and then nothing is approved",
			approvals: []*approval.Approval{aged("a", 1, templates("a", 64<<10))},
			omitted:   []string{"a"}, start: "1;a;;", end: "1;a;;",
		},
		{
			name: "older approvals come first, whatever their names",
			approvals: []*approval.Approval{
				aged("a", 1, templates("a", 40<<10)), aged("b", 2, templates("b", 40<<10)), aged("c", 3, nothing),
			},
			omitted: []string{"a"}, start: "1;a, b, c;;golden/b0000x", end: ",golden/fedora",
		},
		{
			name:      "of equal age, by name",
			approvals: []*approval.Approval{aged("b", 1, templates("b", 40<<10)), aged("a", 1, templates("a", 40<<10))},
			omitted:   []string{"b"}, start: "1;a, b;;golden/a0000x",
		},
		{
			name: "a smaller one still fits after one that does not",
			approvals: []*approval.Approval{
				aged("a", 3, templates("a", 40<<10)), aged("b", 2, templates("b", 40<<10)), aged("c", 1, nothing),
			},
			omitted: []string{"b"}, start: "1;a, b, c;;golden/a0000x", end: ",golden/fedora",
		},
		{
			name:      "512 subjects fit",
			approvals: []*approval.Approval{aged("a", 1, serving("a", 512))},
			start:     "1;a;;golden/fedora>u:a0,u:a1,u:a10,",
		},
		{
			name:      "513 do not",
			approvals: []*approval.Approval{aged("a", 2, serving("a", 512)), aged("b", 1, serving("b", 1))},
			omitted:   []string{"b"}, start: "1;a, b;;golden/fedora>u:a0,u:a1,u:a10,",
		},
		{
			name: "the same subjects count once",
			approvals: []*approval.Approval{
				aged("a", 2, serving("a", 512)), aged("b", 1, serving("a", 512)),
			},
			start: "1;a, b;;golden/fedora>u:a0,u:a1,u:a10,",
		},
		{
			name:      "512 exempt subjects fit",
			approvals: []*approval.Approval{aged("a", 1, exempting("a", 512))},
			start:     "1;a;u:a0,u:a1,u:a10,", end: ";golden/fedora",
		},
		{
			name:      "513 do not, and then no one is exempt",
			approvals: []*approval.Approval{aged("a", 1, exempting("a", 513))},
			omitted:   []string{"a"}, start: "1;a;;", end: "1;a;;",
		},
		{
			name:      "one that denies and is omitted leaves no one exempt",
			approvals: []*approval.Approval{aged("a", 2, exempting("a", 1)), aged("b", 1, exempting("b", 513))},
			omitted:   []string{"b"}, start: "1;a, b;;golden/fedora", end: "1;a, b;;golden/fedora",
		},
		{
			name:      "one that warns and is omitted changes nothing for the exempt subjects",
			approvals: []*approval.Approval{aged("a", 2, exempting("a", 1)), aged("b", 1, warning(serving("b", 513)))},
			omitted:   []string{"b"}, start: "1;a, b;u:a0;golden/fedora", end: "1;a, b;u:a0;golden/fedora",
		},
		{
			name:      "nothing fits",
			approvals: []*approval.Approval{aged("a", 2, templates("a", 65<<10)), aged("b", 1, serving("b", 513))},
			omitted:   []string{"a", "b"}, start: "1;a, b;;", end: "1;a, b;;",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := approval.StateOf(tc.approvals)
			if got.Governed != v1alpha1.GovernedDeny {
				t.Errorf("governed is %s", got.Governed)
			}
			var omitted []string
			for _, a := range got.Omitted {
				omitted = append(omitted, a.Name())
			}
			if diff := cmp.Diff(tc.omitted, omitted); diff != "" {
				t.Errorf("omitted (-want +got):\n%s", diff)
			}
			if !strings.HasPrefix(got.Approvals, tc.start) || !strings.HasSuffix(got.Approvals, tc.end) {
				t.Errorf("got %.60q…%q\nwant %q…%q", got.Approvals, got.Approvals[max(0, len(got.Approvals)-40):], tc.start, tc.end)
			}
			if len(got.Approvals) > 64<<10 {
				t.Errorf("%d bytes", len(got.Approvals))
			}
		})
	}
}
