package audit

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
)

// approve returns an approval of golden/fedora in team-a and team-b.
func approve(name string, changes ...func(*v1alpha1.TemplateApproval)) *approval.Approval {
	return coverage.Compile(approvalObject(name, changes...))
}

func approvalObject(name string, changes ...func(*v1alpha1.TemplateApproval)) *v1alpha1.TemplateApproval {
	object := &v1alpha1.TemplateApproval{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: v1alpha1.TemplateApprovalSpec{
			Namespaces: []string{"team-a", "team-b"},
			Templates:  []v1alpha1.ApprovedTemplate{{Namespace: "golden", Name: "fedora"}},
		},
	}
	for _, change := range changes {
		change(object)
	}
	return object
}

func enforcing(e v1alpha1.Enforcement) func(*v1alpha1.TemplateApproval) {
	return func(a *v1alpha1.TemplateApproval) { a.Spec.Enforcement = e }
}

func TestTally(t *testing.T) {
	a, b := approve("a", enforcing(v1alpha1.EnforcementWarn)), approve("b", enforcing(v1alpha1.EnforcementAudit))
	both := []*approval.Approval{a, b}
	why := cause{rule: ruleNoTemplate, approval: "a", message: "it names no template"}
	good := func(by ...*approval.Approval) evaluation { return evaluation{satisfied: by} }
	bad := evaluation{cause: &why}
	vm := func(namespace, name string) subject { return subject{namespace, name, types.UID(name)} }

	var finished []namespaceTally
	counted := newTally(func(n namespaceTally) { finished = append(finished, n) })
	counted.record(vm("team-a", "one"), both, good(a), nil)
	counted.record(vm("team-a", "two"), both, bad, nil)
	counted.record(vm("team-a", "three"), both, good(a, b), nil)
	counted.record(vm("team-b", "one"), both[1:], bad, nil)
	counted.finish()

	violation := func(namespace, name string) v1alpha1.Violation {
		return v1alpha1.Violation{Namespace: namespace, Name: name, Cause: "it names no template"}
	}
	wantCounts := counts{
		"a": {conforming: 2, violating: 1, violations: []v1alpha1.Violation{violation("team-a", "two")}},
		"b": {conforming: 1, violating: 2, violations: []v1alpha1.Violation{violation("team-a", "two"), violation("team-b", "one")}},
	}
	if diff := cmp.Diff(wantCounts, counted.found.total().approvals, cmp.AllowUnexported(count{})); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	wantNamespaces := []namespaceTally{
		{namespace: "team-a", conforming: 2, violating: 1, findings: []finding{
			{kind: "VirtualMachine", name: "two", uid: "two", cause: why, enforcement: v1alpha1.EnforcementWarn, approvals: []string{"a", "b"}},
		}},
		{namespace: "team-b", violating: 1, findings: []finding{
			{kind: "VirtualMachine", name: "one", uid: "one", cause: why, enforcement: v1alpha1.EnforcementAudit, approvals: []string{"b"}},
		}},
	}
	if diff := cmp.Diff(wantNamespaces, finished, cmp.AllowUnexported(namespaceTally{}, finding{}, objection{}, cause{})); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
}

func TestATallyOfWarnings(t *testing.T) {
	a, b := approve("a"), approve("b")
	both := []*approval.Approval{a, b}
	why := &cause{rule: ruleClosedParameter, approval: "a", message: "parameters[P]: no"}
	vm := func(name string) subject { return subject{"team-a", name, types.UID(name)} }
	var finished []namespaceTally
	counted := newTally(func(n namespaceTally) { finished = append(finished, n) })
	counted.record(vm("one"), both, evaluation{satisfied: []*approval.Approval{a}, closed: map[string]*cause{"a": why}}, nil)
	counted.record(vm("two"), both, evaluation{satisfied: both, closed: map[string]*cause{"a": why}}, nil)
	counted.record(vm("three"), both, evaluation{satisfied: both}, nil)
	counted.finish()

	warning := func(name string) v1alpha1.Violation {
		return v1alpha1.Violation{Namespace: "team-a", Name: name, Cause: "closedParameter: parameters[P]: no"}
	}
	wantCounts := counts{
		"a": {conforming: 3, warned: 2, warnings: []v1alpha1.Violation{warning("one"), warning("two")}},
		"b": {conforming: 2},
	}
	if diff := cmp.Diff(wantCounts, counted.found.total().approvals, cmp.AllowUnexported(count{})); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	want := []namespaceTally{{namespace: "team-a", conforming: 3, warned: 1, warnings: []finding{
		{kind: "VirtualMachine", name: "one", uid: "one", cause: *why, enforcement: v1alpha1.EnforcementDeny, approvals: []string{"a", "b"}},
	}}}
	if diff := cmp.Diff(want, finished, cmp.AllowUnexported(namespaceTally{}, finding{}, objection{}, cause{})); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	total := &count{}
	total.add(counted.found.total().approvals["a"])
	total.add(counted.found.total().approvals["a"])
	if total.warned != 4 || len(total.warnings) != 4 {
		t.Errorf("added up: %+v", total)
	}
}

func TestATallyIsBounded(t *testing.T) {
	a := []*approval.Approval{approve("a")}
	bad := evaluation{cause: &cause{message: "no"}}
	findings := 0
	counted := newTally(func(n namespaceTally) { findings += len(n.findings) })
	for i := range 3 * maximumResults {
		counted.record(subject{namespace: "team-a", name: fmt.Sprint(i)}, a, bad, nil)
	}
	counted.finish()
	if got := counted.found.total().approvals["a"]; got.violating != 3*maximumResults || len(got.violations) != v1alpha1.MaxViolations || findings != maximumResults {
		t.Errorf("violating %d, of which %d are listed and %d reported", got.violating, len(got.violations), findings)
	}
}

// TestViolationsAreDeterministic checks that the first violations do not depend on the order of VMs, or their distribution over lists.
func TestViolationsAreDeterministic(t *testing.T) {
	var all []v1alpha1.Violation
	for i := range 100 {
		all = append(all, v1alpha1.Violation{Namespace: fmt.Sprintf("n%d", i%7), Name: fmt.Sprintf("m%02d", i), Cause: "no"})
	}
	var want []v1alpha1.Violation
	for round := range 50 {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		total, parts := &count{}, make([]count, 1+rand.IntN(4))
		for _, violation := range all {
			parts[rand.IntN(len(parts))].violate(violation)
		}
		for i := range parts {
			total.add(&parts[i])
		}
		if total.violating != 100 || len(total.violations) != v1alpha1.MaxViolations {
			t.Fatalf("%d violating, %d listed", total.violating, len(total.violations))
		}
		if round == 0 {
			want = total.violations
			if want[0] != (v1alpha1.Violation{Namespace: "n0", Name: "m00", Cause: "no"}) {
				t.Fatalf("first: %v", want[0])
			}
		}
		if diff := cmp.Diff(want, total.violations); diff != "" {
			t.Fatalf("round %d (-want +got):\n%s", round, diff)
		}
	}
}

func TestATallyOfPolicies(t *testing.T) {
	a := []*approval.Approval{approve("a")}
	vm := func(namespace, name string) subject { return subject{namespace, name, types.UID(name)} }
	good, bad := ruling{policy: "sizes"}, ruling{policy: "owners", objection: "no owner"}
	timed := ruling{policy: "hours", objection: "it is night", unknown: true}
	var finished []namespaceTally
	counted := newTally(func(n namespaceTally) { finished = append(finished, n) })
	counted.record(vm("team-a", "one"), nil, evaluation{}, []ruling{bad, good, timed})
	counted.record(vm("team-a", "two"), a, evaluation{satisfied: a}, []ruling{good})
	counted.record(vm("team-b", "one"), nil, evaluation{}, []ruling{bad})
	counted.finish()
	violation := func(namespace, name string) v1alpha1.Violation {
		return v1alpha1.Violation{Namespace: namespace, Name: name, Cause: "no owner"}
	}
	if diff := cmp.Diff(counts{"a": {conforming: 1}}, counted.found.total().approvals, cmp.AllowUnexported(count{})); diff != "" {
		t.Errorf("approvals (-want +got):\n%s", diff)
	}
	want := counts{
		"sizes":  {conforming: 2},
		"hours":  {unknown: 1},
		"owners": {violating: 2, violations: []v1alpha1.Violation{violation("team-a", "one"), violation("team-b", "one")}},
	}
	if diff := cmp.Diff(want, counted.found.total().policies, cmp.AllowUnexported(count{})); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	wantNamespaces := []namespaceTally{
		{namespace: "team-a", conforming: 1, passed: 2, failed: 1, unknown: 1, objections: []objection{{"one", "one", bad}}},
		{namespace: "team-b", failed: 1, objections: []objection{{"one", "one", bad}}},
	}
	if diff := cmp.Diff(wantNamespaces, finished, cmp.AllowUnexported(namespaceTally{}, objection{}, ruling{})); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
}
