package compliance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policycache "github.com/vmstencil/stencil/cache/policies"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/fixture"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

func entry(t *testing.T, name, source string) policyset.Entry {
	t.Helper()
	return policyset.Entry{Policy: fixture.Policy(t, name, "package p\nimport rego.v1\n"+source)}
}

// vmt is a template in namespace golden.
func vmt(t *testing.T, name, text string) *templatecache.Template {
	t.Helper()
	return templatecache.Compile(fixture.Template(t, name, text))
}

const plain = `
spec:
  parameters: [{name: NAME, required: true}, {name: SIZE, required: true, enum: [huge, small]}]
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec: {runStrategy: Halted, instancetype: {name: "${SIZE}"}, template: {spec: {domain: {devices: {}}}}}
`

// world holds the reconciler's inputs and its writes.
type world struct {
	templates     []*templatecache.Template
	set           *policyset.Set
	states        []policycache.State
	namespace     map[string]string
	instancetypes chan struct{}
	sizes         map[string]int
	resolved      int
	fail          error

	conditions map[string]*metav1.Condition
	counts     map[string]*v1alpha1.PolicyTemplates
	writes     int
}

type fakeTemplates struct{ *world }

func (s fakeTemplates) List() []*templatecache.Template {
	return append([]*templatecache.Template(nil), s.templates...)
}
func (s fakeTemplates) Synced() bool             { return true }
func (s fakeTemplates) Changed() <-chan struct{} { return nil }

type council struct{ *world }

func (c council) Synced() bool                { return true }
func (c council) Set() *policyset.Set         { return c.set }
func (c council) States() []policycache.State { return c.states }
func (c council) Changed() <-chan struct{}    { return nil }

type catalogue struct{ *world }

func (c catalogue) Synced() bool             { return true }
func (c catalogue) Cached() sizing.Resolver  { return c }
func (c catalogue) Changed() <-chan struct{} { return c.instancetypes }
func (c catalogue) Resolve(_ context.Context, r sizing.Reference) (map[string]any, error) {
	c.resolved++
	guest, found := c.sizes[r.Name]
	if !found {
		return nil, errors.New("it does not exist")
	}
	return map[string]any{"kind": r.Kind, "metadata": map[string]any{"name": r.Name}, "spec": map[string]any{"cpu": map[string]any{"guest": float64(guest)}}}, nil
}

func (w *world) Namespace(context.Context, string) (labels, annotations map[string]string, cached bool) {
	return w.namespace, nil, true
}

func (w *world) template(_ context.Context, t *templatecache.Template, condition *metav1.Condition) error {
	w.writes++
	w.conditions[t.Name] = condition
	return w.fail
}

func (w *world) policy(_ context.Context, name string, templates *v1alpha1.PolicyTemplates) error {
	w.writes++
	w.counts[name] = templates
	return w.fail
}

// with returns a world of templates and policies.
func with(templates []*templatecache.Template, entries ...policyset.Entry) *world {
	w := &world{
		templates: templates, set: policyset.NewSet(entries), instancetypes: make(chan struct{}), sizes: map[string]int{"small": 1, "huge": 64},
		conditions: map[string]*metav1.Condition{}, counts: map[string]*v1alpha1.PolicyTemplates{},
	}
	for _, e := range entries {
		w.states = append(w.states, policycache.State{Object: &v1alpha1.VirtualMachinePolicy{ObjectMeta: metav1.ObjectMeta{Name: e.Policy.Name()}}})
	}
	return w
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func (w *world) reconciler(t *testing.T, clock clock.PassiveClock) *Reconciler {
	t.Helper()
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("metric names: %v %v", problems, err)
	}
	return newReconciler(Options{
		Templates: fakeTemplates{w}, Policies: council{w}, Instancetypes: catalogue{w}, Namespaces: w, Interval: time.Hour, Clock: clock,
	}, w, m)
}

const (
	sizes  = `deny contains {"msg": "too many CPUs", "field": "spec.instancetype"} if input.instancetype.spec.cpu.guest > 8`
	nobody = `deny contains "never" if false`
)

func TestTheConditionOfATemplate(t *testing.T) {
	where := func(e policyset.Entry, change func(*policyset.Entry)) policyset.Entry {
		change(&e)
		return e
	}
	for _, tc := range []struct {
		name                    string
		template                string
		entries                 []policyset.Entry
		wantStatus, wantReason  string
		wantMessage             string
		wantChecked, wantCounts map[string]int32
	}{
		{
			name: "no policy objects", template: strings.Replace(plain, "huge, ", "", 1), entries: []policyset.Entry{entry(t, "sizes", sizes)},
			wantStatus: "True", wantReason: "Compliant", wantMessage: "no policy objects to what this template makes with its defaults",
			wantChecked: map[string]int32{"sizes": 1}, wantCounts: map[string]int32{"sizes": 0},
		},
		{
			name: "policies refuse what it makes of the first listed value", template: plain, entries: []policyset.Entry{entry(t, "owners", `deny contains "no owner"`), entry(t, "sizes", sizes)},
			wantStatus: "False", wantReason: "PolicyViolations", wantMessage: "with its defaults, VirtualMachines of this template are denied: policy owners: no owner; policy sizes: too many CPUs at spec.instancetype",
			wantChecked: map[string]int32{"owners": 1, "sizes": 1}, wantCounts: map[string]int32{"owners": 1, "sizes": 1},
		},
		{
			name: "a policy that only warns refuses nothing, and counts", template: plain,
			entries:    []policyset.Entry{where(entry(t, "sizes", sizes), func(e *policyset.Entry) { e.Enforcement = policyset.EnforcementWarn })},
			wantStatus: "True", wantReason: "PolicyWarnings", wantMessage: "with its defaults, VirtualMachines of this template are not denied, but: policy sizes: too many CPUs at spec.instancetype",
			wantChecked: map[string]int32{"sizes": 1}, wantCounts: map[string]int32{"sizes": 1},
		},
		{
			name: "advice does not count", template: plain, entries: []policyset.Entry{entry(t, "advice", `warn contains "old"`)},
			wantStatus: "True", wantReason: "PolicyWarnings", wantMessage: "with its defaults, VirtualMachines of this template are not denied, but: policy advice: old",
			wantChecked: map[string]int32{"advice": 1}, wantCounts: map[string]int32{"advice": 0},
		},
		{
			name: "a policy that fails cannot tell", template: plain, entries: []policyset.Entry{entry(t, "broken", `deny contains "x" if to_number(input.request.kind) > 1`)},
			wantStatus: "Unknown", wantReason: "NotEvaluated", wantMessage: "policy broken could not be evaluated: ",
			wantChecked: map[string]int32{"broken": 1}, wantCounts: map[string]int32{"broken": 0},
		},
		{
			name: "nor can any about an instance type that there is not", template: strings.Replace(plain, "huge, ", "gone, ", 1), entries: []policyset.Entry{entry(t, "sizes", sizes)},
			wantStatus: "Unknown", wantReason: "NotEvaluated", wantMessage: `policy sizes could not be evaluated: Not found: "VirtualMachineClusterInstancetype gone": it does not exist at spec.instancetype`,
			wantChecked: map[string]int32{"sizes": 1}, wantCounts: map[string]int32{"sizes": 0},
		},
		{
			name: "nobody knows its parameters", template: strings.Replace(plain, ", enum: [huge, small]", "", 1), entries: []policyset.Entry{entry(t, "sizes", sizes)},
			wantStatus: "Unknown", wantReason: "ParametersRequired", wantMessage: "no VirtualMachine can be rendered from its defaults: required parameters have neither a default nor a list of values: SIZE",
			wantChecked: map[string]int32{"sizes": 0}, wantCounts: map[string]int32{"sizes": 0},
		},
		{
			name: "it does not compile", template: strings.Replace(plain, "Halted", "\"${UNKNOWN}\"", 1), entries: []policyset.Entry{entry(t, "sizes", sizes)},
			wantStatus: "Unknown", wantReason: "NotRendered", wantMessage: "the template does not compile: ",
			wantChecked: map[string]int32{"sizes": 0}, wantCounts: map[string]int32{"sizes": 0},
		},
		{
			name: "no policy applies", template: plain,
			entries:     []policyset.Entry{where(entry(t, "sizes", sizes), func(e *policyset.Entry) { e.Match.Namespaces = labels.SelectorFromSet(labels.Set{"env": "prod"}) })},
			wantChecked: map[string]int32{"sizes": 0}, wantCounts: map[string]int32{"sizes": 0},
		},
		{
			name: "whom a policy is about does not matter", template: plain,
			entries:    []policyset.Entry{where(entry(t, "sizes", nobody), func(e *policyset.Entry) { e.Match.Include = []v1alpha1.Subject{{Kind: "User", Name: "ada"}} })},
			wantStatus: "True", wantReason: "Compliant", wantMessage: "no policy objects to what this template makes with its defaults",
			wantChecked: map[string]int32{"sizes": 1}, wantCounts: map[string]int32{"sizes": 0},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := with([]*templatecache.Template{vmt(t, "box", tc.template)}, tc.entries...)
			if _, err := w.reconciler(t, clocktesting.NewFakePassiveClock(noon)).Reconcile(t.Context(), reconcile.Request{}); err != nil {
				t.Fatal(err)
			}
			got := w.conditions["box"]
			if (got != nil) != (tc.wantStatus != "") {
				t.Fatalf("condition %+v", got)
			}
			if got != nil {
				if string(got.Status) != tc.wantStatus || got.Reason != tc.wantReason || !strings.HasPrefix(got.Message, tc.wantMessage) ||
					got.Type != "PolicyCompliant" || got.ObservedGeneration != 3 || !got.LastTransitionTime.Time.Equal(noon) {
					t.Errorf("condition %+v", got)
				}
			}
			for name, want := range tc.wantChecked {
				if count := w.counts[name]; *count.Checked != want || *count.Noncompliant != tc.wantCounts[name] || len(count.First) != int(tc.wantCounts[name]) {
					t.Errorf("%s: %+v", name, count)
				}
			}
		})
	}
}

func TestWhatPoliciesSeeOfASample(t *testing.T) {
	e := entry(t, "tell", `deny contains sprintf("%v", [[
		input.request.operation, input.request.namespace, input.request.name, input.object.metadata.namespace, input.template.name,
		input.parameters, input.object.metadata.labels["vm.kubevirt.io/template"], input.object.metadata.annotations["template.kubevirt.io/template-ref"],
		input.namespace.labels.env]])`)
	w := with([]*templatecache.Template{vmt(t, "box", plain)}, e)
	w.namespace = map[string]string{"env": "prod"}
	if _, err := w.reconciler(t, clocktesting.NewFakePassiveClock(noon)).Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	want := `["CREATE", "golden", "policy-check", "golden", "box", {"NAME": "policy-check", "SIZE": "huge"}, "box", "golden/box", "prod"]`
	if got := w.conditions["box"].Message; !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
}

func TestWhatIsWrittenAndWhatIsRemembered(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	w := with([]*templatecache.Template{vmt(t, "box", plain)}, entry(t, "sizes", sizes))
	r := w.reconciler(t, clock)
	reconcileIt := func(wantWrites, wantResolved int) {
		t.Helper()
		w.writes, w.resolved = 0, 0
		result, err := r.Reconcile(t.Context(), reconcile.Request{})
		if err != nil || result.RequeueAfter != time.Hour {
			t.Fatalf("%v, %v", result, err)
		}
		if w.writes != wantWrites || w.resolved != wantResolved {
			t.Errorf("%d writes, %d judgements; want %d and %d", w.writes, w.resolved, wantWrites, wantResolved)
		}
		// The watches receive what was written.
		box := fixture.Template(t, "box", plain)
		if condition := w.conditions["box"]; condition != nil {
			box.Status.Conditions = []metav1.Condition{*condition}
		}
		w.templates[0] = w.templates[0].Updated(box)
		for i := range w.states {
			w.states[i].Object.Status.Templates = w.counts[w.states[i].Object.Name]
		}
	}
	reconcileIt(2, 1)
	t.Log("nothing has changed")
	clock.SetTime(noon.Add(time.Minute))
	reconcileIt(0, 0)
	t.Log("the namespace has")
	w.namespace = map[string]string{"env": "prod"}
	reconcileIt(0, 1)
	t.Log("the instance type has")
	w.instancetypes, w.sizes["huge"] = make(chan struct{}), 4
	reconcileIt(2, 1)
	if got := w.conditions["box"]; got.Status != metav1.ConditionTrue || !got.LastTransitionTime.Time.Equal(noon.Add(time.Minute)) {
		t.Errorf("got %+v", got)
	}
	t.Log("the policy has, and says the same")
	clock.SetTime(noon.Add(time.Hour))
	w.set = policyset.NewSet([]policyset.Entry{entry(t, "sizes", sizes+"\n")})
	reconcileIt(0, 1)
	t.Log("the policy goes")
	w.set, w.states = policyset.NewSet(nil), nil
	reconcileIt(1, 0)
	if got, written := w.conditions["box"]; !written || got != nil {
		t.Errorf("the condition has not been taken away: %+v", got)
	}
	reconcileIt(0, 0)
}

func TestAFailureToWriteIsTriedAgain(t *testing.T) {
	w := with([]*templatecache.Template{vmt(t, "box", plain)}, entry(t, "sizes", sizes))
	w.fail = errors.New("no")
	if _, err := w.reconciler(t, clocktesting.NewFakePassiveClock(noon)).Reconcile(t.Context(), reconcile.Request{}); err == nil {
		t.Error("nobody noticed")
	}
}

func TestTheFirstNoncompliantTemplatesAreNamed(t *testing.T) {
	var templates []*templatecache.Template
	for i := range 30 {
		templates = append(templates, vmt(t, fmt.Sprintf("box-%02d", 29-i), plain))
	}
	w := with(templates, entry(t, "sizes", sizes))
	if _, err := w.reconciler(t, clocktesting.NewFakePassiveClock(noon)).Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	got := w.counts["sizes"]
	first := v1alpha1.NoncompliantTemplate{Namespace: "golden", Name: "box-00", Cause: "too many CPUs at spec.instancetype"}
	if diff := cmp.Diff([]any{ptr.To[int32](30), ptr.To[int32](30), 20, first}, []any{got.Checked, got.Noncompliant, len(got.First), got.First[0]}); diff != "" {
		t.Error(diff)
	}
}

func TestTemplatesThatAreNotEvaluatedYet(t *testing.T) {
	elsewhere := entry(t, "sizes", sizes)
	elsewhere.Match.Namespaces = labels.SelectorFromSet(labels.Set{"env": "prod"})
	w := with([]*templatecache.Template{vmt(t, "box", plain), vmt(t, "free", plain)}, elsewhere)
	r := w.reconciler(t, clocktesting.NewFakePassiveClock(noon))
	other := fixture.Template(t, "free", plain)
	other.Generation += 7
	unevaluated := func(when string, t1, t2, t3 bool) {
		t.Helper()
		got := []bool{r.Unevaluated(w.templates[0]), r.Unevaluated(w.templates[1]), r.Unevaluated(templatecache.Compile(other))}
		if want := []bool{t1, t2, t3}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	unevaluated("before the first check", true, true, true)
	if _, err := r.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	unevaluated("no policy applies to this version", false, false, true)
	w.set = policyset.NewSet(nil)
	unevaluated("there are no policies", false, false, false)
}
