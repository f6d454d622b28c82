package proofs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/fixture"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/reconcilers/internal/coverage"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// box is a template with parameters of every sort, fixed one without listed values.
const (
	box = `
spec:
  parameters:
  - {name: SIZE, value: small, enum: [small, large]}
  - {name: CORES, type: int, value: "1", minimum: 1, maximum: 8}
  - {name: IMAGE, value: fedora}
  - {name: PIN, sensitive: true, value: "4711", enum: ["4711", "4712"]}
  virtualMachine:
    metadata: {name: box, annotations: {pin: "${PIN}", image: "${IMAGE}"}}
    spec: {runStrategy: Halted, instancetype: {name: "${SIZE}"}, template: {spec: {domain: {cpu: {cores: "${{CORES}}"}, devices: {}}}}}
`
	fixed = `
spec:
  parameters: [{name: IMAGE, value: fedora}]
  virtualMachine:
    metadata: {name: box, annotations: {image: "${IMAGE}"}}
    spec: {runStrategy: Halted, template: {spec: {domain: {cpu: {cores: 9}, devices: {}}}}}
`
	cores  = "input.object.spec.template.spec.domain.cpu.cores"
	over4  = `deny contains sprintf("%d cores", [` + cores + `]) if ` + cores + ` > 4`
	over16 = `deny contains "x" if ` + cores + ` > 16`
)

func entry(t testing.TB, name, source string, changes ...func(*policyset.Entry)) policyset.Entry {
	t.Helper()
	e := policyset.Entry{Policy: fixture.Policy(t, name, "package p\n"+source), Timeout: time.Minute}
	for _, change := range changes {
		change(&e)
	}
	return e
}

func vmt(t testing.TB, name, text string, changes ...func(*metav1.ObjectMeta)) *templatecache.Template {
	t.Helper()
	object := fixture.Template(t, name, text)
	object.UID = types.UID("uid-" + name)
	for _, change := range changes {
		change(&object.ObjectMeta)
	}
	return templatecache.Compile(object)
}

// world holds the reconciler's inputs and its writes.
type world struct {
	templates  []*templatecache.Template
	set        *policyset.Set
	approvals  []coverage.Approval
	namespaces []coverage.Namespace
	sizes      map[string]int
	changed    chan struct{}
	unsynced   bool
	fail       error
	snapshot   error
	clock      *clocktesting.FakePassiveClock

	// evaluated counts the evaluations of each policy, and evaluating is called before each.
	evaluated  map[string]int
	evaluating func(context.Context)
	conditions map[string]*metav1.Condition
	writes     int
}

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func newWorld(templates []*templatecache.Template, entries ...policyset.Entry) *world {
	return &world{
		templates: templates, set: policyset.NewSet(entries), sizes: map[string]int{"small": 1, "large": 64}, changed: make(chan struct{}),
		clock: clocktesting.NewFakePassiveClock(noon), conditions: map[string]*metav1.Condition{},
		namespaces: []coverage.Namespace{{Name: "golden"}, {Name: "team-a"}, {Name: "team-b"}},
	}
}

// approve adds an approval of this spec, or replaces that of the same name.
func (w *world) approve(t testing.TB, name, spec string) {
	t.Helper()
	object := &v1alpha1.TemplateApproval{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1}, Spec: *fixture.Decode[v1alpha1.TemplateApprovalSpec](t, spec)}
	for i := range w.approvals {
		if w.approvals[i].Name() == name {
			object.Generation = w.approvals[i].Generation() + 1
			object.Status = w.approvals[i].Object.Status
			w.approvals = slices.Delete(w.approvals, i, i+1)
			break
		}
	}
	compiled, err := approval.Compile(object)
	if err != nil {
		compiled = approval.Closed(object, err)
	}
	w.approvals = append(w.approvals, coverage.Approval{Approval: compiled, Object: object})
}

// fakeTemplates and the others are what the reconciler reads of a world.
type (
	fakeTemplates     struct{ *world }
	fakePolicies      struct{ *world }
	fakeInstancetypes struct{ *world }
)

func (f fakeTemplates) List() []*templatecache.Template { return slices.Clone(f.templates) }
func (f fakeTemplates) Synced() bool                    { return !f.unsynced }
func (f fakeTemplates) Changed() <-chan struct{}        { return nil }

func (f fakePolicies) Set() *policyset.Set      { return f.set }
func (f fakePolicies) Synced() bool             { return true }
func (f fakePolicies) Changed() <-chan struct{} { return nil }

func (f fakeInstancetypes) Cached() sizing.Resolver  { return f }
func (f fakeInstancetypes) Synced() bool             { return true }
func (f fakeInstancetypes) Changed() <-chan struct{} { return f.changed }
func (f fakeInstancetypes) Resolve(_ context.Context, r sizing.Reference) (map[string]any, error) {
	guest, found := f.sizes[r.Name]
	if !found {
		return nil, errors.New("it does not exist")
	}
	return map[string]any{"kind": r.Kind, "metadata": map[string]any{"name": r.Name}, "spec": map[string]any{"cpu": map[string]any{"guest": float64(guest)}}}, nil
}

func (w *world) Snapshot(context.Context) (coverage.Snapshot, error) {
	return coverage.Snapshot{Approvals: w.approvals, Namespaces: w.namespaces}, w.snapshot
}

func (w *world) Namespace(_ context.Context, name string) (labels, annotations map[string]string, cached bool) {
	for _, namespace := range w.namespaces {
		if namespace.Name == name {
			return namespace.Labels, nil, true
		}
	}
	return nil, nil, false
}

func (w *world) write(_ context.Context, object statuswriter.Object, condition *metav1.Condition) error {
	w.writes++
	w.conditions[object.Name] = condition
	return w.fail
}

// counting counts evaluations.
type counting struct {
	Evaluator
	*world
}

func (c counting) Evaluate(ctx context.Context, entries []policyset.Entry, in *rego.Input) policyset.Decision {
	for i := range entries {
		c.evaluated[entries[i].Policy.Name()]++
	}
	if c.evaluating != nil {
		c.evaluating(ctx)
	}
	return c.Evaluator.Evaluate(ctx, entries, in)
}

func (w *world) reconciler(changes ...func(*limits)) *Reconciler {
	l := defaultLimits
	l.template = time.Hour
	for _, change := range changes {
		change(&l)
	}
	r := newReconciler(Options{
		Templates: fakeTemplates{w}, Policies: fakePolicies{w}, Instancetypes: fakeInstancetypes{w}, Approvals: w, Namespaces: w, Interval: time.Hour, Clock: w.clock,
	}, w, l)
	r.evaluator = counting{r.evaluator, w}
	return r
}

// run reconciles, and stores what was written.
func (w *world) run(t testing.TB, r *Reconciler) reconcile.Result {
	t.Helper()
	w.writes, w.evaluated = 0, map[string]int{}
	result, err := r.Reconcile(t.Context(), coverage.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	w.store(t)
	return result
}

// store stores the written conditions, as the watches report them.
func (w *world) store(t testing.TB) {
	t.Helper()
	stored := func(name string) []metav1.Condition {
		if condition := w.conditions[name]; condition != nil {
			return []metav1.Condition{*condition}
		}
		return nil
	}
	for i, before := range w.templates {
		object := fixture.Template(t, before.Name, box)
		object.ObjectMeta = *before.Metadata()
		object.Status.Conditions = stored(before.Name)
		w.templates[i] = before.Updated(object)
	}
	for i := range w.approvals {
		object := w.approvals[i].Object.DeepCopy()
		object.Status.Conditions = stored(object.Name)
		w.approvals[i].Object = object
	}
}

// state is the status, reason and message of a condition.
func (w *world) state(name string) string {
	condition := w.conditions[name]
	if condition == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
}

const (
	templateHolds = "True Compliant: no policy denies a VirtualMachine of this template, whatever the allowed values of its parameters"
	approvalHolds = "True Compliant: no policy denies a VirtualMachine that this approval approves"
	notAll        = "Unknown NotDecided: no VirtualMachine that is denied was found, but not all were decided: "
	teamA         = "namespaces: [team-a]\ntemplates: [{namespace: golden, name: box}]\nparameters: "
)

func TestConditions(t *testing.T) {
	warns := func(e *policyset.Entry) { e.Enforcement = policyset.EnforcementWarn }
	where := func(selector string) func(*policyset.Entry) {
		return func(e *policyset.Entry) {
			var err error
			if e.Match.Namespaces, err = labels.Parse(selector); err != nil {
				t.Fatal(err)
			}
		}
	}
	several := func(n int) string { // policies that deny the defaults
		var rules []string
		for i := range n {
			rules = append(rules, fmt.Sprintf(`deny contains "%d" if input.object.kind`, i))
		}
		return strings.Join(rules, "\n")
	}
	for name, tc := range map[string]struct {
		template     string
		approvals    map[string]string
		policies     []policyset.Entry
		env          []string // the label env of the namespaces golden, team-a, team-b and more
		combinations int
		want         string
		wantApproval map[string]string
	}{
		"a policy that holds": {
			policies: []policyset.Entry{entry(t, "p", over16)}, want: templateHolds,
		},
		"values that the template accepts": {
			policies: []policyset.Entry{entry(t, "p", over4)}, want: "False PolicyViolations: with CORES=5, policy p denies: 5 cores",
		},
		"the defaults": {
			policies: []policyset.Entry{entry(t, "p", `deny contains "x" if `+cores)}, want: "False PolicyViolations: with its defaults, policy p denies: x",
		},
		"the fewest values first": {
			policies: []policyset.Entry{entry(t, "a", `deny contains "two" if { `+cores+` > 4; input.instancetype.spec.cpu.guest > 8 }`), entry(t, "b", over4)},
			want:     "False PolicyViolations: with CORES=5, policy b denies: 5 cores; with SIZE=large, CORES=5, policy a denies: two",
		},
		"an approval that permits too much": {
			approvals: map[string]string{"a": teamA + "[{name: CORES, allowed: ['1', '2', '8']}]"}, policies: []policyset.Entry{entry(t, "p", over4)},
			want:         "False PolicyViolations: with CORES=8, approved by a, policy p denies: 8 cores",
			wantApproval: map[string]string{"a": "False PolicyViolations: template golden/box with CORES=8, policy p denies: 8 cores"},
		},
		"an approval that does not": {
			approvals: map[string]string{"a": teamA + "[{name: CORES, maximum: 4}]"}, policies: []policyset.Entry{entry(t, "p", over4)},
			want: templateHolds, wantApproval: map[string]string{"a": approvalHolds},
		},
		"two approvals that do and one that does not": {
			approvals: map[string]string{"a": teamA + "[{name: CORES, maximum: 8}]", "b": teamA + "[{name: CORES, minimum: 1}]", "c": teamA + "[{name: CORES, maximum: 2}]"},
			policies:  []policyset.Entry{entry(t, "p", over4)},
			want:      "False PolicyViolations: with CORES=5, approved by a, b, policy p denies: 5 cores",
			wantApproval: map[string]string{
				"a": "False PolicyViolations: template golden/box with CORES=5, policy p denies: 5 cores", "b": "False PolicyViolations: template golden/box with CORES=5, policy p denies: 5 cores", "c": approvalHolds,
			},
		},
		"an approval that closes all": {
			approvals: map[string]string{"a": teamA + "[]"}, policies: []policyset.Entry{entry(t, "p", over4)}, want: templateHolds, wantApproval: map[string]string{"a": approvalHolds},
		},
		"an approval of another template": {
			approvals: map[string]string{"a": strings.Replace(teamA, "name: box", "name: other", 1) + "[]"}, policies: []policyset.Entry{entry(t, "p", over4)},
			want: "False PolicyViolations: with CORES=5, policy p denies: 5 cores", wantApproval: map[string]string{"a": ""},
		},
		"an approval without namespaces": {
			approvals: map[string]string{"a": strings.Replace(teamA, "team-a", "team-x", 1) + "[]"}, policies: []policyset.Entry{entry(t, "p", over4)},
			want: "False PolicyViolations: with CORES=5, policy p denies: 5 cores", wantApproval: map[string]string{"a": ""},
		},
		"an invalid approval": {
			approvals: map[string]string{"a": teamA + "[]\noverrides: [x]"}, policies: []policyset.Entry{entry(t, "p", over4)},
			want: "False PolicyViolations: with CORES=5, policy p denies: 5 cores", wantApproval: map[string]string{"a": ""},
		},
		"a template without listed values": {
			template: fixed, policies: []policyset.Entry{entry(t, "p", over4)},
		},
		"one that is approved": {
			template: fixed, approvals: map[string]string{"a": teamA + "[]"}, policies: []policyset.Entry{entry(t, "p", over4)},
			wantApproval: map[string]string{"a": "False PolicyViolations: template golden/box with its defaults, policy p denies: 9 cores"},
		},
		"values that only the approval lists": {
			template: fixed, approvals: map[string]string{"a": teamA + "[{name: IMAGE, allowed: [fedora, debian]}]"},
			policies:     []policyset.Entry{entry(t, "p", `deny contains "x" if input.object.metadata.annotations.image == "debian"`)},
			want:         "False PolicyViolations: with IMAGE=debian, approved by a, policy p denies: x",
			wantApproval: map[string]string{"a": "False PolicyViolations: template golden/box with IMAGE=debian, policy p denies: x"},
		},
		"a template that does not compile": {
			template: strings.Replace(box, "[small, large]", "[small, small]", 1), approvals: map[string]string{"a": teamA + "[]"}, policies: []policyset.Entry{entry(t, "p", over4)},
			wantApproval: map[string]string{"a": ""},
		},
		"a policy that only warns": {
			approvals: map[string]string{"a": teamA + "[{name: CORES, maximum: 8}]"}, policies: []policyset.Entry{entry(t, "p", over4, warns)}, wantApproval: map[string]string{"a": ""},
		},
		"a policy about changes": {
			policies: []policyset.Entry{entry(t, "p", over4, func(e *policyset.Entry) { e.Match.Operations = []string{"UPDATE"} })},
		},
		"a policy about other templates": {
			policies: []policyset.Entry{entry(t, "p", over4, func(e *policyset.Entry) { e.Match.Templates = []policyset.TemplateMatch{{Name: "other"}} })},
		},
		"a policy about labels of VMs": {
			template: strings.Replace(box, "name: box, ", `name: box, labels: {image: "${SIZE}"}, `, 1),
			policies: []policyset.Entry{entry(t, "p", `deny contains "x" if input.object.kind`, func(e *policyset.Entry) { e.Match.Objects = labels.SelectorFromSet(labels.Set{"image": "large"}) })},
			want:     "False PolicyViolations: with SIZE=large, policy p denies: x",
		},
		"values of sensitive parameters": {
			policies: []policyset.Entry{entry(t, "p", `deny contains sprintf("PIN %s", [input.object.metadata.annotations.pin]) if input.object.metadata.annotations.pin != "4711"`)},
			want:     "False PolicyViolations: with PIN=***, policy p denies: ***",
		},
		"the error of a policy about a sensitive value": {
			policies: []policyset.Entry{entry(t, "p", `deny contains "x" if to_number(concat("", ["x", input.object.metadata.annotations.pin])) > 1`)},
			want:     "Unknown NotEvaluated: with its defaults, policy p could not be evaluated: 2:22: to_number failed",
		},
		"a failure and a denial": {
			policies: []policyset.Entry{entry(t, "broken", `deny contains "x" if to_number(input.object.kind) > 1`), entry(t, "p", over4)},
			want:     "False PolicyViolations: with CORES=5, policy p denies: 5 cores",
		},
		"an instance type that does not exist": {
			template: strings.Replace(box, "[small, large]", "[small, gone]", 1), policies: []policyset.Entry{entry(t, "p", `deny contains "x" if input.instancetype.spec.cpu.guest > 99`)},
			want: notAll + `policy p: spec.instancetype: Not found: "VirtualMachineClusterInstancetype gone": it does not exist`,
		},
		"parameters without listed values": {
			policies: []policyset.Entry{entry(t, "p", `deny contains "x" if input.object.metadata.annotations.image == "debian"`)}, want: notAll + "policy p: it depends on parameters whose values are not listed: IMAGE",
		},
		"those of an approval": {
			approvals: map[string]string{"a": teamA + "[{name: IMAGE, pattern: 'f.*'}]"}, policies: []policyset.Entry{entry(t, "p", `deny contains "x" if input.object.metadata.annotations.image == "debian"`)},
			want:         notAll + "policy p: it depends on parameters whose values are not listed: IMAGE",
			wantApproval: map[string]string{"a": notAll + "policy p for template golden/box: it depends on parameters whose values are not listed: IMAGE"},
		},
		"an approval that allows nothing with the default": {
			approvals: map[string]string{"a": teamA + "[{name: IMAGE, pattern: 'd.*'}]"}, policies: []policyset.Entry{entry(t, "p", over4)},
			want: notAll + `policy p: no VirtualMachine is approved with the values at which parameters are held: parameters[IMAGE]: Invalid value: "fedora": must match d.* as a whole (approval "a")`,
		},
		"too many combinations": {
			policies: []policyset.Entry{entry(t, "p", over16)}, combinations: 7, want: notAll + "policy p: 8 combinations of values, the limit is 7",
		},
		"a policy that reads the time": {
			policies: []policyset.Entry{entry(t, "p", `deny contains "x" if input.request.time == "x"`)}, want: templateHolds + "; policy p was decided for no specific time",
		},
		"a policy about users": {
			policies: []policyset.Entry{entry(t, "p", over4, func(e *policyset.Entry) { e.Match.Include = []v1alpha1.Subject{{Kind: "User", Name: "ada"}} })},
			want:     "False PolicyViolations: with CORES=5, policy p denies: 5 cores",
		},
		"a policy for some namespaces": {
			approvals: map[string]string{"a": strings.Replace(teamA, "[team-a]", "[team-a, team-b]", 1) + "[{name: CORES, maximum: 8}]"},
			policies:  []policyset.Entry{entry(t, "p", over4, where("env=prod"))}, env: []string{"test", "test", "prod"},
			want:         "False PolicyViolations: with CORES=5, approved by a in namespace team-b, policy p denies: 5 cores",
			wantApproval: map[string]string{"a": "False PolicyViolations: template golden/box with CORES=5 in namespace team-b, policy p denies: 5 cores"},
		},
		"a policy for other namespaces": {
			approvals: map[string]string{"a": teamA + "[{name: CORES, maximum: 8}]"}, policies: []policyset.Entry{entry(t, "p", over4, where("env=prod"))}, env: []string{"prod", "test"},
			wantApproval: map[string]string{"a": ""},
		},
		"a policy that reads labels of the namespace": {
			approvals: map[string]string{"a": strings.Replace(teamA, "[team-a]", "[team-a, team-b]", 1) + "[]"},
			policies:  []policyset.Entry{entry(t, "p", `deny contains "x" if input.namespace.labels.env == "prod"`)}, env: []string{"test", "test", "prod"},
			want:         "False PolicyViolations: with its defaults, approved by a in namespace team-b, policy p denies: x",
			wantApproval: map[string]string{"a": "False PolicyViolations: template golden/box with its defaults in namespace team-b, policy p denies: x"},
		},
		"more namespaces than are decided": {
			approvals: map[string]string{"a": strings.Replace(teamA, "namespaces: [team-a]", "namespaceSelector: {}", 1) + "[]"},
			policies:  []policyset.Entry{entry(t, "p", `deny contains "x" if input.namespace.labels.env == "prod"`)}, env: []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"},
			want:         notAll + "2 more namespaces of approval a differ for policies and were not decided",
			wantApproval: map[string]string{"a": notAll + "2 more namespaces of approval a differ for policies and were not decided"},
		},
		"more namespaces, which do not differ": {
			approvals: map[string]string{"a": strings.Replace(teamA, "namespaces: [team-a]", "namespaceSelector: {}", 1) + "[]"},
			policies:  []policyset.Entry{entry(t, "p", `deny contains "x" if input.namespace.labels.env == "prod"`)}, env: slices.Repeat([]string{"test"}, 20),
			want: templateHolds, wantApproval: map[string]string{"a": approvalHolds},
		},
		"more policies than are named": {
			policies: []policyset.Entry{entry(t, "a", several(1)), entry(t, "b", several(1)), entry(t, "c", several(1)), entry(t, "d", several(1)), entry(t, "e", several(1)), entry(t, "f", several(1))},
			want: "False PolicyViolations: with its defaults, policy a denies: 0; with its defaults, policy b denies: 0; with its defaults, policy c denies: 0; " +
				"with its defaults, policy d denies: 0; with its defaults, policy e denies: 0; and 1 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.template == "" {
				tc.template = box
			}
			w := newWorld([]*templatecache.Template{vmt(t, "box", tc.template)}, tc.policies...)
			for i, env := range tc.env {
				if i == len(w.namespaces) {
					w.namespaces = append(w.namespaces, coverage.Namespace{Name: fmt.Sprintf("team-c%02d", i)})
				}
				w.namespaces[i].Labels = map[string]string{"env": env, "kubernetes.io/metadata.name": w.namespaces[i].Name}
			}
			for _, name := range []string{"a", "b", "c"} {
				if spec, given := tc.approvals[name]; given {
					w.approve(t, name, spec)
				}
			}
			r := w.reconciler(func(l *limits) {
				if tc.combinations > 0 {
					l.combinations = tc.combinations
				}
			})
			if result := w.run(t, r); result.RequeueAfter != time.Hour {
				t.Errorf("got %v", result)
			}
			if diff := cmp.Diff(tc.want, w.state("box")); diff != "" {
				t.Errorf("template (-want +got):\n%s", diff)
			}
			for name, want := range tc.wantApproval {
				if diff := cmp.Diff(want, w.state(name)); diff != "" {
					t.Errorf("approval %s (-want +got):\n%s", name, diff)
				}
			}
			if got := w.conditions["box"]; got != nil && (got.Type != "PolicyCompliantForAllValues" || got.ObservedGeneration != 3 || !got.LastTransitionTime.Time.Equal(noon)) {
				t.Errorf("got %+v", got)
			}
			if w.run(t, r); w.writes > 0 || len(w.evaluated) > 0 {
				t.Errorf("%d writes and evaluations %v without a change", w.writes, w.evaluated)
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("ä", 1000)
	var policies []policyset.Entry
	for i := range 5 {
		policies = append(policies, entry(t, fmt.Sprintf("p%d", i), `deny contains "`+long+`" if `+cores+` > 4`))
	}
	w := newWorld([]*templatecache.Template{vmt(t, "box", box)}, policies...)
	w.run(t, w.reconciler())
	if got := len(w.conditions["box"].Message); got > maximumMessage || got < maximumMessage-4 {
		t.Errorf("%d bytes", got)
	}
}

// TestOnlyWhatHasChangedIsDecided counts the evaluations of policies after each change.
func TestOnlyWhatHasChangedIsDecided(t *testing.T) {
	sized := `deny contains "x" if input.instancetype.spec.cpu.guest > 99`
	p, s := entry(t, "p", over4), entry(t, "s", sized)
	w := newWorld([]*templatecache.Template{vmt(t, "box", box), vmt(t, "other", box)}, p, s)
	w.approve(t, "a", teamA+"[{name: CORES, maximum: 8}, {name: SIZE, anyValue: true}]")
	r := w.reconciler()
	want := func(change string, evaluated map[string]int, writes int) {
		t.Helper()
		w.run(t, r)
		if diff := cmp.Diff(evaluated, w.evaluated); diff != "" || w.writes != writes {
			t.Errorf("%s: %d writes, want %d; evaluations (-want +got):\n%s", change, w.writes, writes, diff)
		}
	}
	want("the start", map[string]int{"p": 32, "s": 32}, 3)
	want("nothing", map[string]int{}, 0)
	w.set = policyset.NewSet([]policyset.Entry{p, s, entry(t, "new", over16)})
	want("a new policy", map[string]int{"new": 16}, 0)
	w.set = policyset.NewSet([]policyset.Entry{entry(t, "p", strings.Replace(over4, "4", "2", 1)), s})
	want("a policy, and another goes", map[string]int{"p": 16}, 3)
	w.approve(t, "a", teamA+"[{name: CORES, maximum: 2}]")
	want("the approval", map[string]int{"p": 2, "s": 2}, 2)
	w.changed, w.sizes["unused"] = make(chan struct{}), 4
	want("another instance type", map[string]int{}, 0)
	w.changed, w.sizes["small"] = make(chan struct{}), 100
	want("an instance type", map[string]int{"p": 18, "s": 18}, 3)
	w.namespaces[1].Labels = map[string]string{"env": "prod"}
	want("labels that no policy reads", map[string]int{}, 0)
	w.templates[1] = vmt(t, "other", box, func(m *metav1.ObjectMeta) { m.Labels = map[string]string{"a": "b"} })
	want("labels of a template", map[string]int{"p": 16, "s": 16}, 1)
	w.templates = w.templates[:1]
	want("a template goes", map[string]int{}, 0)
	if len(r.memory) != 1 {
		t.Errorf("%d questions are cached", len(r.memory))
	}
	w.approvals = nil
	want("the approval goes", map[string]int{"p": 16, "s": 16}, 1)
	w.set = policyset.NewSet(nil)
	want("the policies go", map[string]int{}, 1)
	if got, written := w.conditions["box"]; !written || got != nil || len(r.memory) != 0 {
		t.Errorf("got %+v, and %d cached questions", got, len(r.memory))
	}
	want("nothing", map[string]int{}, 0)
}

func TestTransitionTimes(t *testing.T) {
	w := newWorld([]*templatecache.Template{vmt(t, "box", box)}, entry(t, "p", over4))
	r := w.reconciler()
	w.run(t, r)
	w.clock.SetTime(noon.Add(time.Minute))
	w.set = policyset.NewSet([]policyset.Entry{entry(t, "p", strings.Replace(over4, "4", "6", 1))})
	w.run(t, r)
	if got := w.conditions["box"]; !strings.Contains(got.Message, "CORES=7") || !got.LastTransitionTime.Time.Equal(noon) {
		t.Errorf("got %+v", got)
	}
	w.set = policyset.NewSet([]policyset.Entry{entry(t, "p", over16)})
	w.run(t, r)
	if got := w.conditions["box"]; got.Status != metav1.ConditionTrue || !got.LastTransitionTime.Time.Equal(noon.Add(time.Minute)) {
		t.Errorf("got %+v", got)
	}
}

// TestPauses gives each template as much work as the budget: the reconciler decides one, and goes on after a pause.
func TestPauses(t *testing.T) {
	var templates []*templatecache.Template
	for i := range 3 {
		templates = append(templates, vmt(t, fmt.Sprintf("box-%d", i), box))
	}
	w := newWorld(templates, entry(t, "p", over4))
	w.approve(t, "a", "namespaces: [team-a]\ntemplates: [{namespace: golden, selector: {}}]\nparameters: [{name: CORES, maximum: 8}]")
	r := w.reconciler()
	pause := 3 * r.limits.budget
	w.evaluating = func(context.Context) { w.clock.SetTime(w.clock.Now().Add(r.limits.budget / 8)) }
	for i := range 3 {
		if result := w.run(t, r); result.RequeueAfter != pause || w.writes != 1 || w.evaluated["p"] != 8 {
			t.Errorf("%d: %v after %d writes and %v", i, result, w.writes, w.evaluated)
		}
		if w.conditions["a"] != nil {
			t.Errorf("the approval has %+v before all templates are decided", w.conditions["a"])
		}
		w.clock.SetTime(w.clock.Now().Add(pause / 2))
		if result := w.run(t, r); result.RequeueAfter != pause/2 || w.writes != 0 || len(w.evaluated) > 0 {
			t.Errorf("%d, in the pause: %v after %d writes and %v", i, result, w.writes, w.evaluated)
		}
		w.clock.SetTime(w.clock.Now().Add(pause / 2))
	}
	if result := w.run(t, r); result.RequeueAfter != time.Hour || w.writes != 1 || len(w.evaluated) > 0 {
		t.Errorf("at the end: %v after %d writes and %v", result, w.writes, w.evaluated)
	}
	if got := w.state("a"); !strings.HasPrefix(got, "False PolicyViolations: template golden/box-0 with CORES=5, policy p denies: 5 cores; template golden/box-1") {
		t.Errorf("got %s", got)
	}
}

// TestAGreedyNamespaceDoesNotUseUpEveryBudget has two namespaces whose templates change all the time, and each of which uses the whole budget.
func TestAGreedyNamespaceDoesNotUseUpEveryBudget(t *testing.T) {
	of := func(namespace, name string, generation int64) *templatecache.Template {
		return vmt(t, name, box, func(m *metav1.ObjectMeta) { m.Namespace, m.Generation, m.UID = namespace, generation, types.UID(name) })
	}
	w := newWorld(nil, entry(t, "p", over4))
	r := w.reconciler()
	w.evaluating = func(context.Context) { w.clock.SetTime(w.clock.Now().Add(2 * r.limits.budget)) }
	for pass := range int64(8) {
		w.templates = []*templatecache.Template{of("greedy", "g", pass), of("more", "m", pass), of("shop", "s", 1), of("yard", "y", 1)}
		w.run(t, r)
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
	}
	for _, name := range []string{"g", "m", "s", "y"} {
		if w.conditions[name] == nil {
			t.Errorf("template %s was never decided", name)
		}
	}
}

// TestTheTimeOfATemplate lets evaluations take until the time of the template is over.
func TestTheTimeOfATemplate(t *testing.T) {
	w := newWorld([]*templatecache.Template{vmt(t, "box", box)}, entry(t, "p", over16))
	r := w.reconciler(func(l *limits) { l.template = time.Millisecond })
	w.evaluating = func(ctx context.Context) { <-ctx.Done() }
	w.run(t, r)
	if got, want := w.state("box"), notAll+"policy p: it takes more than the 1ms for all policies and approvals of a template"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r.limits.template, w.evaluating = time.Hour, nil
	if w.run(t, r); len(w.evaluated) > 0 {
		t.Errorf("it was repeated at once: %v", w.evaluated)
	}
	w.clock.SetTime(noon.Add(r.limits.retry))
	w.run(t, r)
	if got := w.state("box"); got != templateHolds {
		t.Errorf("got %s", got)
	}
}

func TestAFailedEvaluationIsRepeatedLater(t *testing.T) {
	w := newWorld([]*templatecache.Template{vmt(t, "box", box)}, entry(t, "p", `deny contains "x" if to_number(input.object.kind) > 1`))
	r := w.reconciler()
	w.run(t, r)
	if w.run(t, r); len(w.evaluated) > 0 {
		t.Errorf("it was repeated at once: %v", w.evaluated)
	}
	w.clock.SetTime(noon.Add(r.limits.retry))
	if w.run(t, r); w.evaluated["p"] != 1 || w.writes != 0 {
		t.Errorf("evaluations %v, %d writes", w.evaluated, w.writes)
	}
}

func TestFaults(t *testing.T) {
	errBroken := errors.New("broken")
	for name, tc := range map[string]struct {
		fault func(*world)
		want  error
		after time.Duration
	}{
		"caches that are not synced":   {fault: func(w *world) { w.unsynced = true }, after: syncDelay},
		"no approvals can be read":     {fault: func(w *world) { w.snapshot = errBroken }, want: errBroken},
		"no status can be written":     {fault: func(w *world) { w.fail = errBroken }, want: errBroken},
		"and after that there is time": {fault: func(w *world) { w.clock.SetTime(noon.Add(time.Hour)) }, after: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld([]*templatecache.Template{vmt(t, "box", box)}, entry(t, "p", over4))
			w.evaluated = map[string]int{}
			tc.fault(w)
			result, err := w.reconciler().Reconcile(t.Context(), coverage.Cluster)
			if !errors.Is(err, tc.want) || result.RequeueAfter != tc.after && err == nil {
				t.Errorf("got %v and %v", result, err)
			}
		})
	}
}

func TestItEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := newWorld([]*templatecache.Template{vmt(t, "box", box), vmt(t, "other", box)}, entry(t, "p", over4))
	w.evaluated, w.evaluating = map[string]int{}, func(context.Context) { cancel() }
	r := w.reconciler()
	if _, err := r.Reconcile(ctx, coverage.Cluster); !errors.Is(err, context.Canceled) || w.writes != 0 || w.evaluated["p"] != 1 || len(r.memory) != 0 {
		t.Errorf("got %v after %d writes and %v", err, w.writes, w.evaluated)
	}
}
