package evaluation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func exceptionOf(name string, expires time.Time, change func(*v1alpha1.PolicyExceptionSpec)) *evaluation.Exception {
	object := &v1alpha1.PolicyException{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.PolicyExceptionSpec{
			Policies: []string{"sizes", "owners"}, Namespaces: []string{"team-a"}, Names: []string{"db", "legacy-*"}, Reason: "migration", ExpiresAt: metav1.NewTime(expires),
		},
	}
	if change != nil {
		change(&object.Spec)
	}
	return evaluation.NewException(object)
}

func TestExcept(t *testing.T) {
	forAda := func(s *v1alpha1.PolicyExceptionSpec) {
		s.Subjects = []v1alpha1.Subject{{Kind: v1alpha1.SubjectKindUser, Name: "ada"}, {Kind: v1alpha1.SubjectKindGroup, Name: "movers"}, {Kind: v1alpha1.SubjectKindServiceAccount, Namespace: "ci", Name: "bot"}}
	}
	hour := noon.Add(time.Hour)
	one := exceptionOf("one", hour, nil)
	ada := &rego.UserInfo{Username: "ada"}
	for _, tc := range []struct {
		name       string
		exceptions []*evaluation.Exception
		vm         evaluation.VirtualMachine
		policy     string
		failure    bool
		want       string
	}{
		{"the name of the VM", []*evaluation.Exception{one}, evaluation.VirtualMachine{Namespace: "team-a", Name: "db"}, "sizes", false, "one"},
		{"the beginning of its name", []*evaluation.Exception{one}, evaluation.VirtualMachine{Namespace: "team-a", Name: "legacy-1"}, "owners", false, "one"},
		{"no more than the beginning", []*evaluation.Exception{one}, evaluation.VirtualMachine{Namespace: "team-a", Name: "legacy-"}, "owners", false, "one"},
		{"a longer name", []*evaluation.Exception{one}, evaluation.VirtualMachine{Namespace: "team-a", Name: "db-2"}, "sizes", false, ""},
		{"another case", []*evaluation.Exception{one}, evaluation.VirtualMachine{Namespace: "team-a", Name: "DB"}, "sizes", false, ""},
		{"no name", []*evaluation.Exception{exceptionOf("all", hour, func(s *v1alpha1.PolicyExceptionSpec) { s.Names = []string{"*"} })}, evaluation.VirtualMachine{Namespace: "team-a"}, "sizes", false, ""},
		{"every name", []*evaluation.Exception{exceptionOf("all", hour, func(s *v1alpha1.PolicyExceptionSpec) { s.Names = []string{"*"} })}, evaluation.VirtualMachine{Namespace: "team-a", Name: "x"}, "sizes", false, "all"},
		{"another namespace", []*evaluation.Exception{one}, evaluation.VirtualMachine{Namespace: "team-b", Name: "db"}, "sizes", false, ""},
		{"another policy", []*evaluation.Exception{one}, evaluation.VirtualMachine{Namespace: "team-a", Name: "db"}, "licences", false, ""},
		{"a policy that failed", []*evaluation.Exception{one}, evaluation.VirtualMachine{Namespace: "team-a", Name: "db"}, "sizes", true, ""},
		{"the moment of its end", []*evaluation.Exception{exceptionOf("ended", noon, nil)}, evaluation.VirtualMachine{Namespace: "team-a", Name: "db"}, "sizes", false, ""},
		{"a moment before", []*evaluation.Exception{exceptionOf("ending", noon.Add(1), nil)}, evaluation.VirtualMachine{Namespace: "team-a", Name: "db"}, "sizes", false, "ending"},
		{"its user", []*evaluation.Exception{exceptionOf("hers", hour, forAda)}, evaluation.VirtualMachine{Namespace: "team-a", Name: "db", User: ada}, "sizes", false, "hers"},
		{"its group", []*evaluation.Exception{exceptionOf("hers", hour, forAda)}, evaluation.VirtualMachine{Namespace: "team-a", Name: "db", User: &rego.UserInfo{Username: "x", Groups: []string{"movers"}}}, "sizes", false, "hers"},
		{"its service account", []*evaluation.Exception{exceptionOf("hers", hour, forAda)}, evaluation.VirtualMachine{Namespace: "team-a", Name: "db", User: &rego.UserInfo{Username: "system:serviceaccount:ci:bot"}}, "sizes", false, "hers"},
		{"another user", []*evaluation.Exception{exceptionOf("hers", hour, forAda)}, evaluation.VirtualMachine{Namespace: "team-a", Name: "db", User: &rego.UserInfo{Username: "bob", Groups: []string{"ada"}}}, "sizes", false, ""},
		{"an unknown user", []*evaluation.Exception{exceptionOf("hers", hour, forAda)}, evaluation.VirtualMachine{Namespace: "team-a", Name: "db"}, "sizes", false, ""},
		{"the one that ends last", []*evaluation.Exception{exceptionOf("a", hour, nil), exceptionOf("b", hour.Add(1), nil), exceptionOf("c", noon, nil)}, evaluation.VirtualMachine{Namespace: "team-a", Name: "db"}, "sizes", false, "b"},
		{"the first of equals", []*evaluation.Exception{exceptionOf("b", hour, nil), exceptionOf("a", hour, nil)}, evaluation.VirtualMachine{Namespace: "team-a", Name: "db"}, "sizes", false, "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := evaluation.Violation{Policy: tc.policy, Finding: rego.Finding{Message: "no"}, Rule: evaluation.RuleDeny, Failure: tc.failure}
			decision := evaluation.Decision{Denials: []evaluation.Violation{v}, Warnings: []evaluation.Violation{v}, Audited: []evaluation.Violation{v}}
			evaluation.NewExceptions(tc.exceptions).Except(&decision, tc.vm, noon)
			if tc.want == "" {
				want := evaluation.Decision{Denials: []evaluation.Violation{v}, Warnings: []evaluation.Violation{v}, Audited: []evaluation.Violation{v}}
				if diff := cmp.Diff(want, decision); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				return
			}
			if len(decision.Denials)+len(decision.Warnings)+len(decision.Audited) > 0 {
				t.Errorf("violations remain: %+v", decision)
			}
			var got []string
			for _, e := range decision.Excepted {
				got = append(got, string(e.Enforcement)+" "+e.Exception.Name+" "+e.Message)
			}
			if diff := cmp.Diff([]string{"Deny " + tc.want + " no", "Warn " + tc.want + " no", "Audit " + tc.want + " no"}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoExceptionsChangeNothing(t *testing.T) {
	decision := evaluation.Decision{Denials: []evaluation.Violation{{Policy: "sizes"}}}
	var none *evaluation.Exceptions
	for _, x := range []*evaluation.Exceptions{none, {}, evaluation.NewExceptions(nil)} {
		x.Except(&decision, evaluation.VirtualMachine{Namespace: "team-a", Name: "db"}, noon)
		if len(decision.Denials) != 1 || decision.Excepted != nil || !x.Next(noon).IsZero() {
			t.Errorf("got %+v", decision)
		}
	}
}

func TestWhenTheNextExceptionEnds(t *testing.T) {
	x := evaluation.NewExceptions([]*evaluation.Exception{
		exceptionOf("late", noon.Add(2*time.Hour), nil), exceptionOf("ended", noon, nil), exceptionOf("soon", noon.Add(time.Hour), nil), exceptionOf("before", noon.Add(-time.Hour), nil),
	})
	for _, tc := range []struct{ now, want time.Time }{
		{noon.Add(-2 * time.Hour), noon.Add(-time.Hour)}, {noon, noon.Add(time.Hour)}, {noon.Add(time.Hour), noon.Add(2 * time.Hour)}, {noon.Add(2 * time.Hour), time.Time{}},
	} {
		if got := x.Next(tc.now); !got.Equal(tc.want) {
			t.Errorf("at %s: %s, want %s", tc.now, got, tc.want)
		}
	}
}
