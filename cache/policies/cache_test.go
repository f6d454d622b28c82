package policies

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fakecache "k8s.io/client-go/tools/cache/testing"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/fixture"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
)

// engine is a fake engine. The source of a policy selects its behavior.
type engine struct {
	compiled atomic.Int32
	// release unblocks waiting sources.
	release chan struct{}
	// known is the field that the schemas have.
	known atomic.Pointer[string]
}

func (e *engine) fields() string {
	if known := e.known.Load(); known != nil {
		return *known
	}
	return ""
}

type policy struct{ name, source string }

func (p *policy) Name() string            { return p.name }
func (p *policy) Digest() string          { return "digest of " + p.source }
func (p *policy) Metadata() rego.Metadata { return rego.Metadata{} }
func (p *policy) Evaluate(context.Context, *rego.Input) (rego.Result, error) {
	return rego.Result{}, nil
}

func (e *engine) builder(limit time.Duration) *builder {
	return &builder{
		limit:   limit,
		log:     logr.Discard(),
		schemas: func() [sha256.Size]byte { return sha256.Sum256([]byte(e.fields())) },
		compile: func(_ context.Context, d rego.Definition) (policyset.Policy, error) {
			e.compiled.Add(1)
			switch word, field, _ := strings.Cut(d.Source, " "); word {
			case "late":
				before := e.fields()
				<-e.release
				if before != field {
					return nil, &rego.CompileError{Problems: []rego.Problem{{Code: rego.CodeType, Row: 1, Column: 2, Message: "unknown field " + field}}}
				}
			case "reading":
				if e.fields() != field && !d.AnyFields {
					return nil, &rego.CompileError{Problems: []rego.Problem{{Code: rego.CodeType, Row: 1, Column: 2, Message: "unknown field " + field}}}
				}
			case "broken":
				return nil, &rego.CompileError{Problems: []rego.Problem{{Code: rego.CodeParse, Row: 1, Column: 2, Line: d.Source, Message: "broken"}}}
			case "panicking":
				panic("oh")
			case "waiting":
				<-e.release
			}
			return &policy{d.Name, d.Source}, nil
		},
		check: func(_ context.Context, p policyset.Policy, cases []suite.Case) []suite.Result {
			results := make([]suite.Result, len(cases))
			for i := range cases {
				results[i].Name = cases[i].Name
				if strings.HasPrefix(cases[i].Name, "fails") {
					results[i].Failure = "expected nothing"
				}
			}
			return results
		},
	}
}

// vmpol returns a policy with tests.
func vmpol(name, source string, generation int64, tests ...string) *v1alpha1.VirtualMachinePolicy {
	object := &v1alpha1.VirtualMachinePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: generation},
		Spec:       v1alpha1.VirtualMachinePolicySpec{Rego: source},
	}
	for _, test := range tests {
		object.Spec.Tests = append(object.Spec.Tests, v1alpha1.PolicyTest{
			Name: test, Input: v1alpha1.PolicyTestInput{Object: &runtime.RawExtension{Raw: []byte("{}")}},
		})
	}
	return object
}

// started returns a cache that runs until the test ends.
func started(t *testing.T, e *engine, limit time.Duration, first ...*v1alpha1.VirtualMachinePolicy) (*Cache, *fakecache.FakeControllerSource) {
	t.Helper()
	source := fakecache.NewFakeControllerSource()
	t.Cleanup(source.Shutdown)
	for _, object := range first {
		source.Add(object)
	}
	c := newCache(Options{Logger: logr.Discard()}, source, e.builder(limit))
	fixture.Run(t, c.Start)
	return c, source
}

func synced(t *testing.T, c *Cache) {
	t.Helper()
	fixture.Succeeds(t, func() error {
		if !c.Synced() {
			return errors.New("the cache does not get ready")
		}
		return nil
	})
}

// summary describes a policy in the cache in one line.
func summary(c *Cache, name string) string {
	for _, s := range c.States() {
		if s.Object.Name != name {
			continue
		}
		text := fmt.Sprintf("%s built %d", stateName(&s), s.Built)
		if s.Active != nil {
			text += fmt.Sprintf(" in force %d %s", s.Active.Generation, s.Active.Entry.Policy.Digest())
		}
		if len(s.Problems) > 0 {
			text += " problem " + s.Problems[0].Message
		}
		if len(s.Failed) > 0 {
			text += " failed " + s.Failed[0].Name
		}
		return text
	}
	return "unknown"
}

func becomes(t *testing.T, c *Cache, name, want string) {
	t.Helper()
	fixture.Succeeds(t, func() error {
		if got := summary(c, name); got != want {
			return fmt.Errorf("policy %s is %q, want %q", name, got, want)
		}
		return nil
	})
}

func inSet(c *Cache) []string {
	var names []string
	for _, entry := range c.Set().Entries() {
		names = append(names, entry.Policy.Name()+": "+entry.Policy.Digest())
	}
	return names
}

// lastGood sets the status of a policy as the leader writes it while spec is broken.
func lastGood(object *v1alpha1.VirtualMachinePolicy, generation int64, spec string) *v1alpha1.VirtualMachinePolicy {
	object.Status.ActiveGeneration = generation
	if spec != "" {
		object.Status.LastGood = &v1alpha1.PolicyVersion{Generation: generation, Spec: &runtime.RawExtension{Raw: []byte(spec)}}
	}
	return object
}

func TestActiveVersionsAfterAStart(t *testing.T) {
	cases := map[string]struct {
		object *v1alpha1.VirtualMachinePolicy
		want   string
		set    []string
	}{
		"a good policy": {
			object: vmpol("a", "x", 3, "passes"),
			want:   "active built 3 in force 3 digest of x",
			set:    []string{"a: digest of x"},
		},
		"a policy that does not compile decides by its failure mode": {
			object: vmpol("a", "broken", 3),
			want:   "broken built 3 problem broken",
			set:    []string{"a: broken:uid-a/3"},
		},
		"so does one with which the compiler cannot cope": {
			object: vmpol("a", "panicking", 3),
			want:   "broken built 3 problem the compiler failed on this policy (panic)",
			set:    []string{"a: broken:uid-a/3"},
		},
		"a new policy whose tests fail is not in force": {
			object: vmpol("a", "x", 1, "passes", "fails"),
			want:   "inactive built 1 failed fails",
		},
		"one that was in force before and whose tests fail decides by its failure mode": {
			object: lastGood(vmpol("a", "x", 2, "fails"), 1, ""),
			want:   "broken built 2 failed fails",
			set:    []string{"a: broken:uid-a/2"},
		},
		"the last good version of a policy whose tests fail is in the status": {
			object: lastGood(vmpol("a", "x", 2, "fails"), 1, `{"rego":"before"}`),
			want:   "lastGood built 2 in force 1 digest of before failed fails",
			set:    []string{"a: digest of before"},
		},
		"that of one that does not compile as well": {
			object: lastGood(vmpol("a", "broken", 2), 1, `{"rego":"before"}`),
			want:   "lastGood built 2 in force 1 digest of before problem broken",
			set:    []string{"a: digest of before"},
		},
		"a last good version that does not compile any more is none": {
			object: lastGood(vmpol("a", "broken", 2), 1, `{"rego":"broken too"}`),
			want:   "broken built 2 problem broken",
			set:    []string{"a: broken:uid-a/2"},
		},
		"a last good version is forgotten when the policy is good": {
			object: lastGood(vmpol("a", "x", 3), 1, `{"rego":"before"}`),
			want:   "active built 3 in force 3 digest of x",
			set:    []string{"a: digest of x"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, _ := started(t, &engine{}, time.Minute, tc.object)
			synced(t, c)
			if got := summary(c, "a"); got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
			if diff := cmp.Diff(tc.set, inSet(c)); diff != "" {
				t.Errorf("set (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatBecomesOfAChange(t *testing.T) {
	type step struct {
		object *v1alpha1.VirtualMachinePolicy // nil deletes
		want   string
		// unchanged is true if no other set is published.
		unchanged bool
	}
	other := func(o *v1alpha1.VirtualMachinePolicy) *v1alpha1.VirtualMachinePolicy {
		o.UID = "another"
		return o
	}
	status := vmpol("a", "x", 1)
	status.Status.Title = "written by somebody"
	enforcement := vmpol("a", "x", 2)
	enforcement.Spec.Enforcement = v1alpha1.EnforcementWarn
	for name, steps := range map[string][]step{
		"a good version replaces a good one": {
			{object: vmpol("a", "y", 2), want: "active built 2 in force 2 digest of y"},
		},
		"the last good version stays in force while a new one does not compile": {
			{object: vmpol("a", "broken", 2), want: "lastGood built 2 in force 1 digest of x problem broken", unchanged: true},
			{object: vmpol("a", "y", 3), want: "active built 3 in force 3 digest of y"},
		},
		"the last good version stays in force while the tests of a new one fail": {
			{object: vmpol("a", "y", 2, "fails"), want: "lastGood built 2 in force 1 digest of x failed fails", unchanged: true},
			{object: vmpol("a", "y", 3, "passes"), want: "active built 3 in force 3 digest of y"},
		},
		"tests alone change nothing that is in force": {
			{object: vmpol("a", "x", 2, "passes"), want: "active built 2 in force 2 digest of x", unchanged: true},
		},
		"a status is no change": {
			{object: status, want: "active built 1 in force 1 digest of x", unchanged: true},
		},
		"another enforcement is": {
			{object: enforcement, want: "active built 2 in force 2 digest of x"},
		},
		"a policy that is deleted is in force no more": {
			{object: nil, want: "unknown"},
			{object: other(vmpol("a", "broken", 1)), want: "broken built 1 problem broken"},
		},
		"another policy of the same name inherits nothing": {
			{object: other(vmpol("a", "x", 1, "fails")), want: "inactive built 1 failed fails"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, source := started(t, &engine{}, time.Minute, vmpol("a", "x", 1))
			synced(t, c)
			for i, step := range steps {
				changed, statesChanged, before := c.Changed(), c.StatesChanged(), c.Set()
				if step.object == nil {
					source.Delete(vmpol("a", "x", 1))
				} else {
					source.Modify(step.object)
				}
				select {
				case <-statesChanged:
				case <-time.After(20 * time.Second):
					t.Fatalf("step %d: nobody is told", i)
				}
				becomes(t, c, "a", step.want)
				if step.unchanged {
					if c.Set() != before {
						t.Errorf("step %d: another set is published", i)
					}
					continue
				}
				select {
				case <-changed:
				case <-time.After(20 * time.Second):
					t.Errorf("step %d: nobody is told of the other set", i)
				}
			}
		})
	}
}

func TestAModuleIsCompiledOnceWhateverElseChanges(t *testing.T) {
	e := &engine{}
	c, source := started(t, e, time.Minute, vmpol("a", "x", 1))
	synced(t, c)
	before := c.Set().Entries()[0].Policy
	changed := vmpol("a", "x", 2)
	changed.Spec.TimeoutMilliseconds = 7
	source.Modify(changed)
	becomes(t, c, "a", "active built 2 in force 2 digest of x")
	entry := c.Set().Entries()[0]
	if entry.Policy != before || entry.Timeout != 7*time.Millisecond || e.compiled.Load() != 1 {
		t.Errorf("compiled %d times, timeout %v", e.compiled.Load(), entry.Timeout)
	}
}

func TestNotSyncedBeforeEveryPolicyIsCompiled(t *testing.T) {
	e := &engine{release: make(chan struct{})}
	var first []*v1alpha1.VirtualMachinePolicy
	for i := range 500 {
		first = append(first, vmpol(fmt.Sprintf("policy-%03d", i), fmt.Sprintf("x %d", i), 1))
	}
	first = append(first, vmpol("last", "waiting", 1))
	c, _ := started(t, e, time.Minute, first...)
	fixture.Succeeds(t, func() error {
		if got := e.compiled.Load(); got != 501 {
			return fmt.Errorf("%d policies are compiled", got)
		}
		return nil
	})
	if c.Synced() || c.Set().Len() != 0 {
		t.Errorf("ready with %d policies while one is being compiled", c.Set().Len())
	}
	close(e.release)
	synced(t, c)
	if got := c.Set().Len(); got != 501 {
		t.Errorf("%d policies are in force, want 501", got)
	}
}

func TestAnEmptyClusterIsReadyAtOnce(t *testing.T) {
	c, _ := started(t, &engine{}, time.Minute)
	synced(t, c)
	if c.Set() == nil || c.Set().Len() != 0 {
		t.Errorf("want an empty set, got %v", c.Set())
	}
}

func TestAPolicyThatDoesNotGetCompiledHoldsUpNobody(t *testing.T) {
	e := &engine{release: make(chan struct{})}
	defer close(e.release)
	c, source := started(t, e, 50*time.Millisecond, vmpol("a", "x", 1))
	synced(t, c)
	source.Modify(vmpol("a", "waiting", 2))
	source.Add(vmpol("b", "y", 1))
	becomes(t, c, "a", "lastGood built 2 in force 1 digest of x problem it takes too long to compile")
	becomes(t, c, "b", "active built 1 in force 1 digest of y")
}

func TestMetrics(t *testing.T) {
	c, source := started(t, &engine{}, time.Minute, vmpol("a", "x", 1), vmpol("b", "broken", 1), vmpol("c", "x", 1, "fails"), lastGood(vmpol("d", "broken", 2), 1, `{"rego":"y"}`))
	registry := prometheus.NewPedanticRegistry()
	if err := c.metrics.register(registry, c); err != nil {
		t.Fatal(err)
	}
	synced(t, c)
	c.metrics.observe(policyset.Evaluation{Policy: "a", Result: policyset.ResultDeny, Duration: time.Millisecond})
	c.metrics.observe(policyset.Evaluation{Policy: "gone", Result: policyset.ResultDeny, Duration: time.Millisecond})
	c.quarantined(policyset.Quarantine{Policy: "a", Digest: "digest of x"})
	want := `
# HELP stencil_policies Number of VirtualMachinePolicies, by state: active (the current version is active), lastGood (broken, an earlier version is active), broken (no version can be evaluated, failureMode applies), inactive (no version is active).
# TYPE stencil_policies gauge
stencil_policies{state="active"} 1
stencil_policies{state="broken"} 1
stencil_policies{state="inactive"} 1
stencil_policies{state="lastGood"} 1
# HELP stencil_policies_quarantined Number of VirtualMachinePolicies that are in quarantine.
# TYPE stencil_policies_quarantined gauge
stencil_policies_quarantined 1
# HELP stencil_policy_cache_synced 1 when all VirtualMachinePolicies that existed at the start are compiled and tested.
# TYPE stencil_policy_cache_synced gauge
stencil_policy_cache_synced 1
# HELP stencil_policy_quarantines_total Number of times that a VirtualMachinePolicy was put into quarantine because its evaluations repeatedly took too long.
# TYPE stencil_policy_quarantines_total counter
stencil_policy_quarantines_total{policy="a"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"stencil_policies", "stencil_policies_quarantined", "stencil_policy_cache_synced", "stencil_policy_quarantines_total"); err != nil {
		t.Error(err)
	}
	if got := testutil.ToFloat64(c.metrics.outcomes.WithLabelValues("a", "deny")); got != 1 {
		t.Errorf("%v denials are counted, want 1", got)
	}
	source.Delete(vmpol("a", "x", 1))
	becomes(t, c, "a", "unknown")
	count, err := testutil.GatherAndCount(registry, "stencil_policy_evaluations_total", "stencil_policy_evaluation_seconds", "stencil_policy_quarantines_total")
	// Six counters and one histogram for each of b and d.
	if err != nil || count != 14 {
		t.Errorf("%d series are left, want 14: %v", count, err)
	}
}

func TestAQuarantineIsReportedUntilItEnds(t *testing.T) {
	c, _ := started(t, &engine{}, time.Minute, vmpol("a", "x", 1))
	synced(t, c)
	until := time.Now().Add(time.Minute)
	for _, tc := range []struct {
		name string
		q    policyset.Quarantine
		want bool
	}{
		{"of another version", policyset.Quarantine{Policy: "a", Digest: "other", Until: until}, false},
		{"that begins", policyset.Quarantine{Policy: "a", Digest: "digest of x", Until: until}, true},
		{"that ends", policyset.Quarantine{Policy: "a", Digest: "digest of x", Ended: true}, false},
	} {
		statesChanged := c.StatesChanged()
		c.quarantined(tc.q)
		select {
		case <-statesChanged:
		default:
			t.Errorf("a quarantine %s: nobody is told", tc.name)
		}
		if got := c.States()[0].Quarantine != nil; got != tc.want {
			t.Errorf("a quarantine %s: told %v, want %v", tc.name, got, tc.want)
		}
	}
}
