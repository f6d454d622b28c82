package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

// exceptionFor returns an exception from policy p for VM web of team-a.
func exceptionFor(name string, expires time.Time, subjects ...v1alpha1.Subject) *policyset.Exception {
	return policyset.NewException(&v1alpha1.PolicyException{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.PolicyExceptionSpec{
			Policies: []string{"p"}, Namespaces: []string{"team-a"}, Names: []string{"web"}, Subjects: subjects, Reason: "migration", ExpiresAt: metav1.NewTime(expires),
		},
	})
}

func TestPolicingWithExceptions(t *testing.T) {
	const denies, fails = `deny contains "no"`, `deny contains "x" if to_number(input.request.kind) > 1`
	hour := noon.Add(time.Hour)
	ada := v1alpha1.Subject{Kind: v1alpha1.SubjectKindUser, Name: "ada"}
	for _, tc := range []struct {
		name      string
		module    string
		exception *policyset.Exception
		vm        string
		annotated bool
		want      string
	}{
		{"an exception", denies, exceptionFor("one", hour), "web", false, "no, excepted by one"},
		{"one for another VM", denies, exceptionFor("one", hour), "db", false, "no"},
		{"one that has ended", denies, exceptionFor("one", noon), "web", false, "no"},
		{"one for certain users, who are not recorded", denies, exceptionFor("one", hour, ada), "web", false, "no"},
		{"an annotation that claims one", denies, exceptionFor("one", noon), "web", true, "no"},
		{"a policy that fails", fails, exceptionFor("one", hour), "web", false, "failed"},
		{"advice needs none", `warn contains "old"`, exceptionFor("one", hour), "web", false, ""},
		{"what depends on the time", `deny contains "it is day" if time.clock(time.parse_rfc3339_ns(input.request.time))[0] < 20`, exceptionFor("one", hour), "web", false, "it is day, excepted by one"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := policingBy(policy(t, "p", tc.module))
			p.exceptions = policyset.NewExceptions([]*policyset.Exception{tc.exception})
			vm := vmOf("team-a", tc.vm, "")
			if tc.annotated {
				vm["metadata"].(map[string]any)["annotations"] = map[string]any{"stencil.kubevirt.io/policy-exception": "one", "policy-exceptions": "p=one"}
			}
			rulings := p.evaluate(t.Context(), vm, "team-a")
			if len(rulings) != 1 {
				t.Fatalf("rulings: %+v", rulings)
			}
			got := rulings[0].objection
			switch {
			case rulings[0].failed:
				got = "failed"
			case rulings[0].exception != nil:
				got += ", excepted by " + rulings[0].exception.Name
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestExceptionsAreCountedAndReported(t *testing.T) {
	one := exceptionFor("one", noon.Add(time.Hour))
	var done namespaceTally
	counted := newTally(func(n namespaceTally) { done = n })
	excepted := func(policy string) ruling {
		return ruling{policy: policy, digest: "sha256:1", severity: rego.SeverityHigh, enforcement: policyset.EnforcementDeny, objection: "no", exception: one}
	}
	counted.record(subject{"team-a", "web", "u1"}, nil, evaluation{}, []ruling{excepted("p"), excepted("q"), {policy: "r"}})
	counted.record(subject{"team-a", "app", "u2"}, nil, evaluation{}, []ruling{excepted("p"), {policy: "r", objection: "bad", enforcement: policyset.EnforcementDeny}})
	counted.finish()
	total := counted.found.total()
	wantUses := &uses{virtualMachines: 2, first: []v1alpha1.PolicyExceptionUse{
		{Namespace: "team-a", Name: "app", Policy: "p"}, {Namespace: "team-a", Name: "web", Policy: "p"}, {Namespace: "team-a", Name: "web", Policy: "q"},
	}}
	if diff := cmp.Diff(exceptionUses{"one": wantUses}, total.exceptions, cmp.AllowUnexported(uses{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p := total.policies.of("p"); p.excepted != 2 || p.violating != 0 || p.conforming != 0 {
		t.Errorf("policy p: %+v", p)
	}

	report, _ := reportOf(done, noon)
	if s := report.Summary; s.Pass != 1 || s.Fail != 1 || s.Skip != 3 {
		t.Errorf("summary: %+v", s)
	}
	var lines []string
	for _, r := range report.Results {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %t %s %s %s", r.Subjects[0].Name, r.Policy, r.Result, r.Scored, r.Properties["exception"], r.Properties["exceptionReason"], r.Properties["exceptionExpires"])))
	}
	want := []string{"app r fail true", "web p skip false one migration 2026-06-01T13:00:00Z", "web q skip false one migration 2026-06-01T13:00:00Z", "app p skip false one migration 2026-06-01T13:00:00Z"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAReportHasRoomForViolationsFirst checks that exceptions do not displace violations.
func TestAReportHasRoomForViolationsFirst(t *testing.T) {
	var done namespaceTally
	counted := newTally(func(n namespaceTally) { done = n })
	one := exceptionFor("one", noon.Add(time.Hour))
	for i := range maximumResults + 5 {
		counted.record(subject{"team-a", fmt.Sprintf("vm-%03d", i), types.UID(fmt.Sprint(i))}, nil, evaluation{}, []ruling{
			{policy: "p", objection: "no", exception: one}, {policy: "q", objection: "bad"},
		})
	}
	counted.finish()
	report, _ := reportOf(done, noon)
	skipped := 0
	for _, r := range report.Results {
		if r.Result == resultSkip {
			skipped++
		}
	}
	if len(report.Results) != maximumResults || skipped != 0 || report.Summary.Skip != maximumResults+5 {
		t.Errorf("%d results, %d of them skipped, summary %+v", len(report.Results), skipped, report.Summary)
	}
}

func TestExceptionAuditOf(t *testing.T) {
	object := &v1alpha1.PolicyException{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	found := exceptionUses{}
	for i := range 30 {
		found.of("one").add(1, v1alpha1.PolicyExceptionUse{Namespace: "team-a", Name: fmt.Sprintf("vm-%02d", 29-i), Policy: "p"})
	}
	if got := exceptionAuditOf(object, found); got.VirtualMachines != 30 || len(got.Uses) != 20 || got.Uses[0].Name != "vm-00" || got.Uses[19].Name != "vm-19" {
		t.Errorf("got %+v", got)
	}
	object.Spec.Subjects = []v1alpha1.Subject{{Kind: v1alpha1.SubjectKindUser, Name: "ada"}}
	if got := exceptionAuditOf(object, found); got != nil {
		t.Errorf("with subjects: %+v", got)
	}
}

func TestEventsAboutExceptions(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := reportedUses{recorder: recorder}
	one := exceptionFor("one", noon.Add(time.Hour))
	used := func(uids ...types.UID) (list []objection) {
		for _, uid := range uids {
			list = append(list, objection{"vm-" + string(uid), uid, ruling{policy: "p", exception: one}})
		}
		return list
	}
	recorded := func(left int, namespace string, found []objection) []string {
		r.report(namespace, found, &left)
		var got []string
		for len(recorder.Events) > 0 {
			got = append(got, <-recorder.Events)
		}
		return got
	}
	const text = "Normal PolicyExcepted violates policy p, which PolicyException one allows until 2026-06-01T13:00:00Z"
	for _, step := range []struct {
		name      string
		left      int
		namespace string
		found     []objection
		want      int
	}{
		{"a use", 5, "team-a", used("1"), 1},
		{"the same use", 5, "team-a", used("1"), 0},
		{"of another namespace", 5, "team-b", used("1"), 1},
		{"more than there may be at once", 1, "team-a", used("1", "2", "3"), 1},
		{"the others at the next audit", 5, "team-a", used("1", "2", "3"), 1},
		{"no use", 5, "team-a", nil, 0},
		{"a use again", 5, "team-a", used("1"), 1},
	} {
		got := recorded(step.left, step.namespace, step.found)
		if len(got) != step.want || len(got) > 0 && got[0] != text {
			t.Errorf("%s: %q", step.name, got)
		}
	}
}

// heldExceptions implements Exceptions.
type heldExceptions struct{ set *policyset.Exceptions }

func (h heldExceptions) Synced() bool                         { return true }
func (h heldExceptions) Set() *policyset.Exceptions           { return h.set }
func (h heldExceptions) Objects() []*v1alpha1.PolicyException { return nil }
func (h heldExceptions) Changed() <-chan struct{}             { return nil }

func TestTheNextAuditIsAtTheEndOfAnException(t *testing.T) {
	for _, tc := range []struct {
		name string
		ends []time.Duration // after the start of the audit, which ends 10 s later
		want time.Duration
	}{
		{"no exception", nil, time.Hour},
		{"one that ends later", []time.Duration{2 * time.Hour}, time.Hour},
		{"one that ends before", []time.Duration{time.Minute, 2 * time.Hour}, 50 * time.Second},
		{"one that ended during the audit", []time.Duration{5 * time.Second, time.Minute}, time.Millisecond},
		{"one that has ended", []time.Duration{-time.Second}, time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var list []*policyset.Exception
			for i, after := range tc.ends {
				list = append(list, exceptionFor(fmt.Sprint(i), noon.Add(after)))
			}
			r := &Reconciler{options: Options{
				Interval: time.Hour, Clock: clocktesting.NewFakePassiveClock(noon.Add(10 * time.Second)), Exceptions: heldExceptions{policyset.NewExceptions(list)},
			}}
			if got := r.nextAudit(noon); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
