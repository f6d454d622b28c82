package audit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policycache "github.com/vmstencil/stencil/cache/policies"
	"github.com/vmstencil/stencil/internal/fixture"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

func policy(t *testing.T, name, source string, changes ...func(*policyset.Entry)) policyset.Entry {
	t.Helper()
	e := policyset.Entry{Policy: fixture.Policy(t, name, "# METADATA\n# custom:\n#   severity: high\npackage p\nimport rego.v1\n"+source)}
	for _, change := range changes {
		change(&e)
	}
	return e
}

// fakeCaches implements the other inputs of policies.
type fakeCaches struct{}

func (fakeCaches) Namespace(_ context.Context, name string) (labels, annotations map[string]string, known bool) {
	return map[string]string{"env": strings.TrimPrefix(name, "team-")}, nil, true
}

func (fakeCaches) Resolve(_ context.Context, r sizing.Reference) (map[string]any, error) {
	if r.Name != "huge" {
		return nil, errors.New("it does not exist")
	}
	return map[string]any{"kind": r.Kind, "spec": map[string]any{"cpu": map[string]any{"guest": 64.0}}}, nil
}

func policingBy(entries ...policyset.Entry) *policing {
	return &policing{set: policyset.NewSet(entries), evaluator: newAuditEvaluator(), templates: noTemplates{}, instancetypes: fakeCaches{}, namespaces: fakeCaches{}, now: noon}
}

func vmOf(namespace, name, instancetype string) map[string]any {
	vm := map[string]any{"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": map[string]any{}}
	if instancetype != "" {
		vm["spec"].(map[string]any)["instancetype"] = map[string]any{"name": instancetype}
	}
	return vm
}

func TestPolicing(t *testing.T) {
	const sizes = `deny contains {"msg": "too many CPUs", "field": "spec.instancetype", "fix": "take small"} if input.instancetype.spec.cpu.guest > 8`
	enforcing := func(e policyset.Enforcement) func(*policyset.Entry) {
		return func(entry *policyset.Entry) { entry.Enforcement = e }
	}
	lenient := func(e *policyset.Entry) { e.FailureMode = policyset.FailureModeAllow }
	for _, tc := range []struct {
		name, instancetype string
		entry              policyset.Entry
		want               []string // enforcement and objection; "ok" for none
	}{
		{name: "a machine that conforms", entry: policy(t, "p", sizes), want: []string{"Deny ok"}},
		{name: "one that does not", instancetype: "huge", entry: policy(t, "p", sizes), want: []string{"Deny too many CPUs at spec.instancetype; fix: take small"}},
		{name: "what only warns counts", instancetype: "huge", entry: policy(t, "p", sizes, enforcing(policyset.EnforcementWarn)), want: []string{"Warn too many CPUs at spec.instancetype; fix: take small"}},
		{name: "what only records counts", instancetype: "huge", entry: policy(t, "p", sizes, enforcing(policyset.EnforcementAudit)), want: []string{"Audit too many CPUs at spec.instancetype; fix: take small"}},
		{name: "advice does not", entry: policy(t, "p", `warn contains "old"`), want: []string{"Deny ok"}},
		{name: "a policy that fails", entry: policy(t, "p", `deny contains "x" if to_number(input.request.kind) > 1`), want: []string{"Deny failed"}},
		{name: "one that quotes a value", instancetype: "huge", entry: policy(t, "p", `deny contains "x" if to_number(input.object.spec.instancetype.name) > 1`), want: []string{"Deny could not be evaluated: 6:22: to_number failed"}},
		{name: "one that may fail has nothing to say", entry: policy(t, "p", `deny contains "x" if to_number(input.request.kind) > 1`, lenient)},
		{name: "a size that is not known", instancetype: "gone", entry: policy(t, "p", sizes), want: []string{"Deny failed"}},
		{name: "does not matter to one that may fail", instancetype: "gone", entry: policy(t, "p", sizes, lenient), want: []string{"Deny ok"}},
		{name: "a policy about the time that allows now", entry: policy(t, "p", `deny contains "it is night" if time.clock(time.parse_rfc3339_ns(input.request.time))[0] > 20`), want: []string{"Deny ok"}},
		{name: "one that denies now", entry: policy(t, "p", `deny contains "it is day" if time.clock(time.parse_rfc3339_ns(input.request.time))[0] < 20`), want: []string{"Deny unknown"}},
		{name: "a policy about the user", entry: policy(t, "p", `deny contains "not an admin" if not "admins" in input.request.userInfo.groups`), want: []string{"Deny unknown"}},
		{name: "one that fails", entry: policy(t, "p", `deny contains "x" if to_number(input.request.time) > 1`), want: []string{"Deny failed"}},
		{name: "a policy about changes only is not asked", entry: policy(t, "p", sizes, func(e *policyset.Entry) { e.Match.Operations = []string{"UPDATE"} })},
		{name: "nor one about other namespaces", entry: policy(t, "p", sizes, func(e *policyset.Entry) { e.Match.Namespaces = labels.SelectorFromSet(labels.Set{"env": "b"}) })},
		{name: "whom a policy is about does not matter", entry: policy(t, "p", sizes, func(e *policyset.Entry) { e.Match.Include = []v1alpha1.Subject{{Kind: "User", Name: "ada"}} }), want: []string{"Deny ok"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, one := range policingBy(tc.entry).evaluate(t.Context(), vmOf("team-a", "web", tc.instancetype), "team-a") {
				text := one.objection
				switch {
				case one.unknown:
					text = "unknown"
				case one.failed && tc.instancetype != "huge" && strings.HasPrefix(text, "could not be evaluated: "):
					text = "failed"
				case text == "":
					text = "ok"
				}
				got = append(got, string(one.enforcement)+" "+text)
				if one.policy != "p" || one.severity != rego.SeverityHigh || one.digest == "" {
					t.Errorf("ruling %+v", one)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPoliced(t *testing.T) {
	namespaces := []coverage.Namespace{{Name: "team-a", Labels: map[string]string{"env": "prod"}}, {Name: "team-b"}}
	prod := func(e *policyset.Entry) { e.Match.Namespaces = labels.SelectorFromSet(labels.Set{"env": "prod"}) }
	const source = `deny contains "no" if false`
	for _, tc := range []struct {
		name     string
		policing *policing
		want     map[string]bool
	}{
		{"no policies", policingBy(), map[string]bool{}},
		{"nobody knows policies", nil, map[string]bool{}},
		{"one for all namespaces", policingBy(policy(t, "p", source)), map[string]bool{"team-a": true, "team-b": true}},
		{"one for some", policingBy(policy(t, "p", source, prod)), map[string]bool{"team-a": true}},
		{"one that has nothing to say of new machines", policingBy(policy(t, "p", source, func(e *policyset.Entry) { e.Match.Operations = []string{"DELETE"} })), map[string]bool{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.policing.policed(namespaces)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAScanAsksPoliciesInTheSameWalk(t *testing.T) {
	source := &fakePager{vms: []string{"team-a/1", "team-a/2", "team-b/1", "team-c/1"}}
	s, finished := scanOf(source, 3, "team-a")
	s.policing = policingBy(policy(t, "second", `deny contains "no second" if input.object.metadata.name == "2"`))
	s.policed = map[string]bool{"team-a": true, "team-b": true}
	all, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := all.total()
	if diff := cmp.Diff([]string{"team-a@", "team-b@"}, sortedReads(source)); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
	want := counts{"second": {conforming: 2, violating: 1, violations: []v1alpha1.Violation{{Namespace: "team-a", Name: "2", Cause: "no second"}}}}
	if diff := cmp.Diff(want, found.policies, cmp.AllowUnexported(count{})); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	if found.vms != 3 || found.approvals["a"].violating != 2 {
		t.Errorf("%d machines, approvals %+v", found.vms, found.approvals["a"])
	}
	if _, both := finished.Load("team-b"); !both {
		t.Error("no Report about a namespace that only policies apply in")
	}
}

func sortedReads(s *fakePager) []string {
	reads := append([]string(nil), s.reads...)
	if len(reads) == 2 && reads[0] > reads[1] {
		reads[0], reads[1] = reads[1], reads[0]
	}
	return reads
}

func TestAuditOf(t *testing.T) {
	before := metav1.NewTime(noon.Add(-time.Hour))
	violations := []v1alpha1.Violation{{Namespace: "team-a", Name: "web", Cause: "no"}}
	found := counts{"p": {conforming: 3, violating: 1, unknown: 4, violations: violations}}
	audited := func(change func(*v1alpha1.PolicyAudit)) *v1alpha1.PolicyAudit {
		a := &v1alpha1.PolicyAudit{Generation: 2, Conforming: ptr.To[int32](3), Violating: ptr.To[int32](1), Unknown: 4, Violations: violations, LastTime: &before}
		if change != nil {
			change(a)
		}
		return a
	}
	now := func(a *v1alpha1.PolicyAudit) { a.LastTime = ptr.To(metav1.NewTime(noon)) }
	for _, tc := range []struct {
		name    string
		stored  *v1alpha1.PolicyAudit
		inForce *policycache.Active
		want    *v1alpha1.PolicyAudit
	}{
		{name: "the first one", inForce: &policycache.Active{Generation: 2}, want: audited(now)},
		{name: "the same again", inForce: &policycache.Active{Generation: 2}, stored: audited(nil)},
		{name: "another count", inForce: &policycache.Active{Generation: 2}, stored: audited(func(a *v1alpha1.PolicyAudit) { a.Violating = ptr.To[int32](2) }), want: audited(now)},
		{name: "another version", inForce: &policycache.Active{Generation: 2}, stored: audited(func(a *v1alpha1.PolicyAudit) { a.Generation = 1 }), want: audited(now)},
		{name: "one that is broken", stored: audited(nil), want: audited(func(a *v1alpha1.PolicyAudit) { now(a); a.Generation = 5 })},
	} {
		t.Run(tc.name, func(t *testing.T) {
			state := &policycache.State{Object: &v1alpha1.VirtualMachinePolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 5}}, Active: tc.inForce}
			state.Object.Status.Audit = tc.stored
			if diff := cmp.Diff(tc.want, auditOf(state, found, noon)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAReportTellsWhatPoliciesSay(t *testing.T) {
	n := tallied()
	n.passed, n.failed, n.unknown = 5, 1, 2
	n.objections = []objection{{name: "db", uid: "u2", ruling: ruling{policy: "sizes", digest: "sha256:1", severity: rego.SeverityCritical, enforcement: policyset.EnforcementWarn, objection: "too large"}}}
	report, _ := reportOf(n, noon)
	if report.Summary.Pass != 9 || report.Summary.Fail != 3 || report.Summary.Skip != 2 || len(report.Results) != 3 {
		t.Errorf("summary %+v, %d results", report.Summary, len(report.Results))
	}
	got := report.Results[2]
	if got.Policy != "sizes" || got.Rule != "deny" || got.Category != "Virtual machine policy" || got.Severity != "critical" || got.Result != "fail" ||
		got.Description != "too large" || got.Subjects[0].Name != "db" || got.Properties["enforcement"] != "Warn" || got.Properties["digest"] != "sha256:1" {
		t.Errorf("result %+v", got)
	}
}
