package policystatus

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policycache "github.com/vmstencil/stencil/cache/policies"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// policy is a fake compiled policy.
type policy struct{ digest string }

func (p policy) Name() string   { return "one" }
func (p policy) Digest() string { return p.digest }
func (p policy) Metadata() rego.Metadata {
	return rego.Metadata{Title: "Title of " + p.digest, Severity: rego.SeverityHigh}
}
func (p policy) Evaluate(context.Context, *rego.Input) (rego.Result, error) {
	return rego.Result{}, nil
}

// reader is a fake compiled policy that reads values of the cluster.
type reader struct {
	policy
	data []rego.Binding
}

func (r reader) Data() []rego.Binding { return r.data }

// reads makes the active version one that reads a value, which is missing for a reason or exists.
func reads(missing string) change {
	return func(o *observation) {
		second := rego.Binding{Name: "second", Missing: missing}
		if missing == "" {
			second.Value = &rego.Value{}
		}
		o.Active.Entry.Policy = reader{policy{"d3"}, []rego.Binding{{Name: "first", Value: &rego.Value{}}, second}}
	}
}

func allowsFailures(o *observation) { o.Active.Spec.FailureMode = v1alpha1.FailureModeAllow }

type change func(*observation)

// observed returns a policy of generation 3 that is active and routed, changed by changes.
func observed(changes ...change) observation {
	object := &v1alpha1.VirtualMachinePolicy{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "uid", Generation: 3}}
	object.Spec.Rego, object.Spec.Enforcement, object.Spec.FailureMode = "package x", v1alpha1.EnforcementDeny, v1alpha1.FailureModeDeny
	o := observation{now: noon, routed: true, State: policycache.State{Object: object, Built: 3}}
	withActive(3, "d3")(&o)
	for _, apply := range changes {
		apply(&o)
	}
	return o
}

func withActive(generation int64, digest string) change {
	return func(o *observation) {
		o.Active = &policycache.Active{
			Generation: generation,
			Spec: &v1alpha1.VirtualMachinePolicySpec{
				Rego: "package of " + digest, Enforcement: v1alpha1.EnforcementDeny, FailureMode: v1alpha1.FailureModeDeny,
			},
			Entry: policyset.Entry{Policy: policy{digest}},
		}
	}
}

func nothingActive(o *observation) { o.Active = nil }
func broken(o *observation)        { o.Active, o.Broken = nil, &policyset.Entry{} }
func notRouted(o *observation)     { o.routed = false }

func problems(list ...rego.Problem) change { return func(o *observation) { o.Problems = list } }

func tests(n int, failed ...string) change {
	return func(o *observation) {
		o.Tests = n
		for _, name := range failed {
			o.Failed = append(o.Failed, suite.Result{Name: name, Failure: "failure of " + name})
		}
	}
}

func replicas(list ...v1alpha1.PolicyReplica) change {
	return func(o *observation) { o.Object.Status.Replicas = list }
}

func replica(name, digest string, count int64, changes ...func(*v1alpha1.PolicyReplica)) v1alpha1.PolicyReplica {
	r := v1alpha1.PolicyReplica{
		Name: name, ActiveDigest: digest, LastUpdateTime: metav1.NewTime(noon.Add(-time.Minute)),
		PolicyEvaluations: v1alpha1.PolicyEvaluations{Count: count, P50Microseconds: count + 1, P99Microseconds: count + 2, Timeouts: count + 3, Errors: count + 4},
	}
	for _, apply := range changes {
		apply(&r)
	}
	return r
}

func quarantined(r *v1alpha1.PolicyReplica) { r.Quarantined = true }
func silentForAWhile(r *v1alpha1.PolicyReplica) {
	r.LastUpdateTime = metav1.NewTime(noon.Add(-4 * time.Minute))
}
func longSilent(r *v1alpha1.PolicyReplica) {
	r.LastUpdateTime = metav1.NewTime(noon.Add(-2 * time.Hour))
}

// conditions returns the status, reason and message of each condition.
func conditions(status v1alpha1.VirtualMachinePolicyStatus) map[string]string {
	all := map[string]string{}
	for _, c := range status.Conditions {
		all[c.Type] = string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	return all
}

func TestConditions(t *testing.T) {
	const fine, untested, active = "True Compiled: it compiles", "True NoTests: it has no tests", "True Active: it is active"
	cases := map[string]struct {
		given                    observation
		compiled, tested, active string
	}{
		"a good policy": {given: observed(), compiled: fine, tested: untested, active: active},
		"one with tests": {
			given: observed(tests(4)), compiled: fine, tested: "True TestsPassed: 4 of 4 tests pass", active: active,
		},
		"one that does not compile": {
			given:    observed(problems(rego.Problem{Row: 2, Column: 3, Message: "no"}, rego.Problem{}, rego.Problem{}), withActive(2, "d2")),
			compiled: "False CompileError: 2:3: no, and 2 more problems",
			tested:   "False NotCompiled: it does not compile, so no test can run",
			active:   "False LastGoodVersion: generation 3 is not active because it does not compile; generation 2 stays active",
		},
		"one whose tests fail": {
			given:    observed(tests(9, "a", "b", "c", "d", "e", "f"), withActive(1, "d1")),
			compiled: fine,
			tested:   `False TestsFailed: 6 of 9 tests fail: "a", "b", "c", "d", "e" and 1 more`,
			active:   "False LastGoodVersion: generation 3 is not active because its tests fail; generation 1 stays active",
		},
		"a new one whose tests fail": {
			given:    observed(tests(1, "a"), nothingActive),
			compiled: fine,
			tested:   `False TestsFailed: 1 of 1 tests fail: "a"`,
			active:   "False NeverActive: no version of it has been active yet, because its tests fail; it evaluates nothing",
		},
		"a broken one": {
			given:    observed(problems(rego.Problem{Message: "no"}), broken),
			compiled: "False CompileError: no",
			tested:   "False NotCompiled: it does not compile, so no test can run",
			active:   "False Broken: no version of it can be evaluated; what it applies to is denied",
		},
		"a broken one that warns": {
			given: observed(problems(rego.Problem{Message: "no"}), broken, func(o *observation) {
				o.Object.Spec.Enforcement = v1alpha1.EnforcementWarn
			}),
			compiled: "False CompileError: no",
			tested:   "False NotCompiled: it does not compile, so no test can run",
			active:   "False Broken: no version of it can be evaluated; what it applies to is admitted with a warning",
		},
		"a broken one that allows": {
			given: observed(problems(rego.Problem{Message: "no"}), broken, func(o *observation) {
				o.Object.Spec.FailureMode = v1alpha1.FailureModeAllow
			}),
			compiled: "False CompileError: no",
			tested:   "False NotCompiled: it does not compile, so no test can run",
			active:   "False Broken: no version of it can be evaluated; what it applies to is admitted without evaluation",
		},
		"one that nobody is asked about yet": {
			given: observed(notRouted), compiled: fine, tested: untested,
			active: "False NotRouted: the webhook configuration does not send the requests that it applies to yet",
		},
		"one that reads a value that does not exist": {
			given: observed(reads("ConfigMap a/b does not exist; create it")), compiled: fine, tested: untested,
			active: "False DataMissing: data.cluster.second has no value: ConfigMap a/b does not exist; create it; until then what it applies to is denied",
		},
		"one whose failures allow": {
			given: observed(reads("it is too long"), allowsFailures), compiled: fine, tested: untested,
			active: "False DataMissing: data.cluster.second has no value: it is too long; until then what it applies to is admitted without evaluation",
		},
		"one that reads values that exist": {
			given: observed(reads("")), compiled: fine, tested: untested, active: "True Active: it is active",
		},
		"one in quarantine on some replicas": {
			given: observed(replicas(replica("b", "d3", 1, quarantined), replica("a", "d3", 1, quarantined),
				replica("c", "d3", 1), replica("d", "d2", 1, quarantined), replica("e", "d3", 1, quarantined, longSilent), replica("f", "d3", 1, quarantined, silentForAWhile))),
			compiled: fine, tested: untested,
			active: "False Quarantined: its evaluations repeatedly took too long, so it is not evaluated on a, b until it is tried again; until then what it applies to is denied",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := statusOf(tc.given)
			want := map[string]string{"Compiled": tc.compiled, "Tested": tc.tested, "Active": tc.active}
			if diff := cmp.Diff(want, conditions(got)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			for _, condition := range got.Conditions {
				if condition.ObservedGeneration != 3 || !condition.LastTransitionTime.Time.Equal(noon) {
					t.Errorf("condition %s is of generation %d, since %v", condition.Type, condition.ObservedGeneration, condition.LastTransitionTime)
				}
			}
		})
	}
}

func TestTheRestOfTheStatus(t *testing.T) {
	stored := func(o *observation) {
		o.Object.Status.Audit = &v1alpha1.PolicyAudit{}
		o.Object.Status.Templates = &v1alpha1.PolicyTemplates{}
	}
	long := strings.Repeat("é", 1000)
	cases := map[string]struct {
		given observation
		want  v1alpha1.VirtualMachinePolicyStatus
	}{
		"what is in force, without what others write": {
			given: observed(stored, replicas(replica("a", "d3", 10), replica("b", "d3", 5), replica("c", "d2", 99))),
			want: v1alpha1.VirtualMachinePolicyStatus{
				ObservedGeneration: 3, Title: "Title of d3", Severity: "high", ActiveGeneration: 3, ActiveDigest: "d3",
				Evaluations: &v1alpha1.PolicyEvaluations{Count: 15, P50Microseconds: 11, P99Microseconds: 12, Timeouts: 21, Errors: 23},
			},
		},
		"the last good version is kept while spec is broken": {
			given: observed(withActive(2, "d2"), problems(
				rego.Problem{Row: 1, Column: 2, Line: "x := y", Message: "no"}, rego.Problem{Field: "parameters.a", Message: long},
			)),
			want: v1alpha1.VirtualMachinePolicyStatus{
				ObservedGeneration: 3, Title: "Title of d2", Severity: "high", ActiveGeneration: 2, ActiveDigest: "d2",
				Errors: []v1alpha1.PolicyError{
					{Row: 1, Column: 2, Line: "x := y", Message: "no"},
					{Field: "parameters.a", Message: strings.Repeat("é", 510) + "…"},
				},
				LastGood: &v1alpha1.PolicyVersion{Generation: 2, Spec: &runtime.RawExtension{
					Raw: []byte(`{"rego":"package of d2","enforcement":"Deny","failureMode":"Deny"}`),
				}},
			},
		},
		"nothing in force": {
			given: observed(nothingActive, tests(2, "a")),
			want: v1alpha1.VirtualMachinePolicyStatus{
				ObservedGeneration: 3, FailedTests: []v1alpha1.FailedPolicyTest{{Name: "a", Message: "failure of a"}},
			},
		},
		"no more errors than a status holds": {
			given: observed(broken, problems(make([]rego.Problem, 30)...)),
			want:  v1alpha1.VirtualMachinePolicyStatus{ObservedGeneration: 3, Errors: make([]v1alpha1.PolicyError, 20)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := statusOf(tc.given)
			got.Conditions = nil
			if tc.want.LastGood != nil && !sameJSON(tc.want.LastGood.Spec, got.LastGood.Spec) {
				t.Errorf("last good version %s, want %s", got.LastGood.Spec.Raw, tc.want.LastGood.Spec.Raw)
			}
			if tc.want.LastGood != nil {
				got.LastGood.Spec = tc.want.LastGood.Spec
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestATransitionHasTheTimeAtWhichItWasSeen(t *testing.T) {
	first := statusOf(observed())
	o := observed(notRouted)
	o.Object.Status, o.now = first, noon.Add(time.Hour)
	second := statusOf(o)
	for kind, want := range map[string]time.Time{"Compiled": noon, "Active": noon.Add(time.Hour)} {
		if got := meta.FindStatusCondition(second.Conditions, kind).LastTransitionTime; !got.Time.Equal(want) {
			t.Errorf("condition %s since %v, want %v", kind, got, want)
		}
	}
	o = observed()
	o.Object.Status, o.now = first, noon.Add(time.Hour)
	if third := statusOf(o); !same(first, third) {
		t.Errorf("nothing has changed (-first +third):\n%s", cmp.Diff(first, third))
	}
}

func TestNotes(t *testing.T) {
	with := func(status metav1.ConditionStatus, reason string, generation int64) *v1alpha1.VirtualMachinePolicyStatus {
		return &v1alpha1.VirtualMachinePolicyStatus{Conditions: []metav1.Condition{{Type: "Active", Status: status, Reason: reason, ObservedGeneration: generation}}}
	}
	none := &v1alpha1.VirtualMachinePolicyStatus{}
	for name, tc := range map[string]struct {
		before, after *v1alpha1.VirtualMachinePolicyStatus
		want          bool
	}{
		"a policy that comes into force":           {none, with("True", "Active", 1), true},
		"one that stays in force":                  {with("True", "Active", 1), with("True", "Active", 1), false},
		"a new version of it":                      {with("True", "Active", 1), with("True", "Active", 2), true},
		"one that breaks":                          {with("True", "Active", 1), with("False", "LastGoodVersion", 2), true},
		"one that goes into quarantine":            {with("True", "Active", 1), with("False", "Quarantined", 1), true},
		"the moment before the requests are sent":  {none, with("False", "NotRouted", 1), false},
		"requests that are not sent any more":      {with("True", "Active", 1), with("False", "NotRouted", 1), true},
		"another reason why it is not in force":    {with("False", "LastGoodVersion", 1), with("False", "Broken", 1), true},
		"the same reason for another, worse state": {with("False", "LastGoodVersion", 1), with("False", "LastGoodVersion", 2), true},
	} {
		if got := noteOf(tc.before, tc.after) != nil; got != tc.want {
			t.Errorf("%s: told %v, want %v", name, got, tc.want)
		}
	}
}
