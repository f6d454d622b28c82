package approvals

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	fakecache "k8s.io/client-go/tools/cache/testing"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/fixture"
)

type change func(*v1alpha1.TemplateApproval)

// tapp returns an approval of golden/fedora in all namespaces.
func tapp(name string, changes ...change) *v1alpha1.TemplateApproval {
	object := &v1alpha1.TemplateApproval{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: v1alpha1.TemplateApprovalSpec{
			NamespaceSelector: &v1alpha1.LabelSelector{},
			Templates:         []v1alpha1.ApprovedTemplate{{Namespace: "golden", Name: "fedora"}},
		},
	}
	for _, apply := range changes {
		apply(object)
	}
	return object
}

func inNamespaces(names ...string) change {
	return func(o *v1alpha1.TemplateApproval) { o.Spec.Namespaces, o.Spec.NamespaceSelector = names, nil }
}

func withLabel(key, value string) change {
	return func(o *v1alpha1.TemplateApproval) {
		o.Spec.NamespaceSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

func withOverride(text string) change {
	return func(o *v1alpha1.TemplateApproval) { o.Spec.Overrides = []string{text} }
}

func ofGeneration(generation int64) change {
	return func(o *v1alpha1.TemplateApproval) { o.Generation = generation }
}

// namespace returns a namespace with labels given as pairs.
func namespace(name string, pairs ...string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for i := 0; i < len(pairs); i += 2 {
		object.Labels[pairs[i]] = pairs[i+1]
	}
	return object
}

// testCache is a cache with sources that tests control.
type testCache struct {
	*Cache
	approvals, namespaces *fakecache.FakeControllerSource
}

func newTestCache(timeout time.Duration) testCache {
	f := testCache{approvals: fakecache.NewFakeControllerSource(), namespaces: fakecache.NewFakeControllerSource()}
	f.Cache = newCache(Options{Logger: logr.Discard(), ExcludedNamespaces: []string{"stencil-system"}, WaitTimeout: timeout}, f.approvals, f.namespaces)
	return f
}

func (f testCache) start(t *testing.T) {
	t.Helper()
	fixture.Run(t, f.Start)
	fixture.Eventually(t, f.Synced)
}

func names(approvals []*approval.Approval) string {
	var names []string
	for _, a := range approvals {
		names = append(names, a.Name())
	}
	return strings.Join(names, " ")
}

func TestApprovalsFor(t *testing.T) {
	f := newTestCache(time.Minute)
	f.approvals.Add(tapp("everywhere"))
	f.approvals.Add(tapp("by-name", inNamespaces("team-a", "team-b")))
	f.approvals.Add(tapp("by-label", withLabel("tier", "gold")))
	for _, object := range []*metav1.PartialObjectMetadata{
		namespace("team-a"), namespace("team-c", "tier", "gold"), namespace("team-d", "tier", "silver"), namespace("kube-system", "tier", "gold"), namespace("stencil-system", "tier", "gold"),
	} {
		f.namespaces.Add(object)
	}
	f.start(t)
	for _, tc := range []struct{ name, namespace, want string }{
		{"by name, and by the selector that selects all", "team-a", "by-name everywhere"},
		{"by label", "team-c", "by-label everywhere"},
		{"a label of another value", "team-d", "everywhere"},
		{"kube-system is not covered", "kube-system", ""},
		{"nor is Stencil's own namespace", "stencil-system", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for range 2 {
				if got := names(f.ApprovalsFor(tc.namespace)); got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			}
		})
	}
	other, err := approval.Compile(tapp("other", inNamespaces("team-a", "team-z")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"team-a"}, f.NamespacesOf(other)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"team-a", "team-c", "team-d"}, f.NamespacesOf(f.ApprovalsFor("team-d")[0])); diff != "" {
		t.Error(diff)
	}
	if got := names(f.Approvals()); got != "by-label by-name everywhere" {
		t.Errorf("all approvals: %q", got)
	}
}

func TestTheCacheFollowsApprovalsAndNamespaces(t *testing.T) {
	f := newTestCache(time.Minute)
	f.approvals.Add(tapp("gold", withLabel("tier", "gold")))
	f.namespaces.Add(namespace("team-a"))
	f.namespaces.Add(namespace("team-b"))
	f.start(t)
	covers := func(want string) func() bool {
		return func() bool { return names(f.ApprovalsFor("team-a")) == want }
	}
	if !covers("")() {
		t.Fatal("team-a is covered from the start")
	}
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"a label comes", func() { f.namespaces.Modify(namespace("team-a", "tier", "gold")) }, "gold"},
		{"an approval comes", func() { f.approvals.Add(tapp("all")) }, "all gold"},
		{"an approval changes", func() { f.approvals.Modify(tapp("gold", ofGeneration(2), withLabel("tier", "silver"))) }, "all"},
		{"an approval goes", func() { f.approvals.Delete(tapp("all")) }, ""},
		{"a label changes", func() { f.namespaces.Modify(namespace("team-a", "tier", "silver")) }, "gold"},
		{"a label goes", func() { f.namespaces.Modify(namespace("team-a")) }, ""},
	} {
		step.do()
		err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) { return covers(step.want)(), nil })
		if err != nil {
			t.Fatalf("%s: covered by %q, want %q", step.name, names(f.ApprovalsFor("team-a")), step.want)
		}
	}
}

func TestAnApprovalThatDoesNotCompileIsClosed(t *testing.T) {
	f := newTestCache(time.Minute)
	f.approvals.Add(tapp("broken", withOverride("spec.")))
	f.namespaces.Add(namespace("team-a"))
	f.namespaces.Add(namespace("stencil-system"))
	f.start(t)
	approvals := f.ApprovalsFor("team-a")
	if names(approvals) != "broken" || approvals[0].Err() == nil {
		t.Fatalf("got %q", names(approvals))
	}
	decision := approval.Evaluate(approvals, approval.Question{User: authenticationv1.UserInfo{Username: "ada"}, Template: approval.Template{Namespace: "golden", Name: "fedora"}})
	if !decision.Denied() {
		t.Errorf("got %+v", decision)
	}
	if got := f.ApprovalsFor("stencil-system"); len(got) > 0 {
		t.Error("a broken approval covers Stencil's own namespace")
	}
	f.approvals.Modify(tapp("broken", withOverride("spec.a"), ofGeneration(2)))
	fixture.Eventually(t, func() bool { return f.ApprovalsFor("team-a")[0].Err() == nil })
}

func TestAnApprovalIsCompiledAgainOnlyWhenItsSpecChanges(t *testing.T) {
	f := newTestCache(time.Minute)
	f.approvals.Add(tapp("a"))
	f.namespaces.Add(namespace("team-a"))
	f.start(t)
	before := f.ApprovalsFor("team-a")[0]

	f.approvals.Modify(tapp("a", func(o *v1alpha1.TemplateApproval) { o.Status.ObservedGeneration = 1 }))
	f.approvals.Add(tapp("marker")) // arrives after the previous event
	fixture.Eventually(t, func() bool { return len(f.ApprovalsFor("team-a")) == 2 })
	if f.ApprovalsFor("team-a")[0] != before {
		t.Error("it was compiled again for another status")
	}
	f.approvals.Modify(tapp("a", func(o *v1alpha1.TemplateApproval) { o.UID = "another" }))
	fixture.Eventually(t, func() bool { return f.ApprovalsFor("team-a")[0].UID() == "another" })
}

func TestApprovalsForAnUnknownNamespace(t *testing.T) {
	t.Run("it is waited for", func(t *testing.T) {
		f := newTestCache(time.Minute)
		f.approvals.Add(tapp("gold", withLabel("tier", "gold")))
		f.start(t)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if got := names(f.ApprovalsFor("late")); got != "gold" {
					t.Errorf("got %q", got)
				}
			})
		}
		f.namespaces.Add(namespace("other"))
		f.namespaces.Add(namespace("late", "tier", "gold"))
		wg.Wait()
	})
	t.Run("when it does not come, nothing is approved there", func(t *testing.T) {
		f := newTestCache(time.Millisecond)
		f.approvals.Add(tapp("everywhere"))
		f.start(t)
		decision := approval.Evaluate(f.ApprovalsFor("never"), approval.Question{Template: approval.Template{Namespace: "golden", Name: "fedora"}})
		if !decision.Denied() || !strings.Contains(decision.Objections[0].Message, "try again in a moment") {
			t.Errorf("got %+v", decision)
		}
	})
	t.Run("a deleted namespace is unknown", func(t *testing.T) {
		f := newTestCache(time.Millisecond)
		f.namespaces.Add(namespace("team-a"))
		f.start(t)
		if got := f.ApprovalsFor("team-a"); len(got) > 0 {
			t.Fatalf("got %q", names(got))
		}
		f.namespaces.Delete(namespace("team-a"))
		fixture.Eventually(t, func() bool { return len(f.ApprovalsFor("team-a")) == 1 })
	})
}

func TestItIsNotSyncedBeforeBothListsAreRead(t *testing.T) {
	x := newIndex(logr.Discard(), nil)
	if err := x.namespaces.Replace(nil, "1"); err != nil || x.hasSynced() {
		t.Errorf("synced without approvals (%v)", err)
	}
	if err := x.approvals.Replace(nil, "1"); err != nil || !x.hasSynced() {
		t.Errorf("not synced with both (%v)", err)
	}
}

func TestReadersAndWritersAtOnce(t *testing.T) {
	f := newTestCache(time.Minute)
	f.approvals.Add(tapp("all"))
	f.namespaces.Add(namespace("team-a"))
	f.start(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if got := f.ApprovalsFor("team-a"); len(got) == 0 || got[0].Name() != "all" {
						t.Errorf("got %q", names(got))
						return
					}
					f.index.size()
				}
			}
		})
	}
	for i := range 100 {
		f.approvals.Modify(tapp("all", ofGeneration(int64(i+2))))
		f.namespaces.Modify(namespace("team-a", "round", fmt.Sprint(i)))
		f.namespaces.Add(namespace(fmt.Sprint("n", i)))
	}
	fixture.Eventually(t, func() bool { return f.ApprovalsFor("team-a")[0].Generation() == 101 && len(f.ApprovalsFor("n99")) == 1 })
	close(stop)
	wg.Wait()
}

func TestMetrics(t *testing.T) {
	f := newTestCache(time.Minute)
	f.approvals.Add(tapp("a", inNamespaces("team-a")))
	f.approvals.Add(tapp("b", inNamespaces("team-a", "team-b")))
	f.approvals.Add(tapp("broken", inNamespaces("team-b"), withOverride("spec.")))
	for _, name := range []string{"team-a", "team-b", "team-c"} {
		f.namespaces.Add(namespace(name))
	}
	f.start(t)
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{index: f.index})
	want := `
# HELP stencil_approval_cache_approvals Number of TemplateApprovals in the cache, by whether they compile. One that does not approves nothing.
# TYPE stencil_approval_cache_approvals gauge
stencil_approval_cache_approvals{valid="false"} 1
stencil_approval_cache_approvals{valid="true"} 2
# HELP stencil_approval_cache_governed_namespaces Number of namespaces that at least one TemplateApproval selects.
# TYPE stencil_approval_cache_governed_namespaces gauge
stencil_approval_cache_governed_namespaces 2
# HELP stencil_approval_cache_synced 1 when the first lists of TemplateApprovals and namespaces have arrived.
# TYPE stencil_approval_cache_synced gauge
stencil_approval_cache_synced 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("metric names: %v %v", problems, err)
	}
}

func TestTheStoresRefuseWhatIsNotTheirs(t *testing.T) {
	x := newIndex(logr.Discard(), nil)
	approvals, namespaces := x.approvals, x.namespaces
	for name, err := range map[string]error{
		"approvals: add":      approvals.Add(&metav1.PartialObjectMetadata{}),
		"approvals: replace":  approvals.Replace([]any{"x"}, "1"),
		"approvals: delete":   approvals.Delete(42),
		"namespaces: add":     namespaces.Add(&v1alpha1.TemplateApproval{}),
		"namespaces: replace": namespaces.Replace([]any{"x"}, "1"),
		"namespaces: delete":  namespaces.Delete(42),
	} {
		if err == nil {
			t.Errorf("%s took it", name)
		}
	}
	if diff := cmp.Diff(false, x.hasSynced()); diff != "" {
		t.Error("a list that could not be read counts as read")
	}
}

func BenchmarkApprovalsFor(b *testing.B) {
	x := newIndex(logr.Discard(), nil)
	for i := range 200 {
		if err := x.approvals.Add(tapp(fmt.Sprint("a", i), withLabel("team", fmt.Sprint(i)))); err != nil {
			b.Fatal(err)
		}
	}
	if err := x.namespaces.Add(namespace("team-a", "team", "7")); err != nil {
		b.Fatal(err)
	}
	b.Run("asked again", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x.approvalsFor("team-a")
		}
	})
	b.Run("asked for the first time", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			clear(x.memo)
			x.approvalsFor("team-a")
		}
	})
}

func TestNamespace(t *testing.T) {
	f := newTestCache(time.Minute)
	annotated := namespace("team-a", "tier", "gold")
	annotated.Annotations = map[string]string{"owner": "ada", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
	f.namespaces.Add(annotated)
	f.start(t)
	labels, annotations, known := f.Namespace(t.Context(), "team-a")
	if diff := cmp.Diff([]any{map[string]string{"tier": "gold"}, map[string]string{"owner": "ada"}, true}, []any{labels, annotations, known}); diff != "" {
		t.Error(diff)
	}
	annotated = annotated.DeepCopy()
	annotated.Annotations["owner"] = "bob"
	f.namespaces.Modify(annotated)
	fixture.Eventually(t, func() bool {
		_, annotations, _ := f.Namespace(t.Context(), "team-a")
		return annotations["owner"] == "bob"
	})

	late := make(chan bool)
	go func() {
		_, _, known := f.Namespace(context.WithoutCancel(t.Context()), "late")
		late <- known
	}()
	f.namespaces.Add(namespace("late"))
	if !<-late {
		t.Error("a namespace that came while somebody waited for it was not noticed")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, known := f.Namespace(cancelled, "never"); known {
		t.Error("a namespace that does not exist is known")
	}
}

func TestAwaitState(t *testing.T) {
	f := newTestCache(time.Minute)
	f.namespaces.Add(namespace("decided", v1alpha1.LabelGoverned, v1alpha1.GovernedFalse))
	f.namespaces.Add(namespace("new"))
	f.start(t)

	t.Run("a decided namespace is not waited for", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f.AwaitState(ctx, "decided")
	})
	t.Run("an undecided one is waited for", func(t *testing.T) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.AwaitState(t.Context(), "new")
		}()
		select {
		case <-done:
			t.Error("it was not")
		case <-time.After(20 * time.Millisecond):
		}
		f.namespaces.Modify(namespace("new", v1alpha1.LabelGoverned, v1alpha1.GovernedDeny))
		<-done
	})
	t.Run("no longer than the request lasts", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f.AwaitState(ctx, "unknown")
	})
	t.Run("no longer than the timeout", func(t *testing.T) {
		impatient := newTestCache(time.Millisecond)
		impatient.namespaces.Add(namespace("new"))
		impatient.start(t)
		impatient.AwaitState(t.Context(), "new")
	})
}
