package instancetypes

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"
	fakecache "k8s.io/client-go/tools/cache/testing"

	"github.com/vmstencil/stencil/internal/fixture"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// testCache is a cache with sources that tests control.
type testCache struct {
	*Cache
	sources map[string]*fakecache.FakeControllerSource
}

func newTestCache(waitTimeout time.Duration) testCache {
	f := testCache{sources: map[string]*fakecache.FakeControllerSource{}}
	sources := map[string]cache.ListerWatcher{}
	for _, kind := range kinds {
		f.sources[kind] = fakecache.NewFakeControllerSource()
		sources[kind] = f.sources[kind]
	}
	f.Cache = newCache(Options{Logger: logr.Discard(), WaitTimeout: waitTimeout}, &cluster{}, sources)
	return f
}

func (f testCache) start(t *testing.T) {
	t.Helper()
	fixture.Run(t, f.Start)
	fixture.Eventually(t, f.Synced)
}

const small = `
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachineClusterInstancetype
metadata:
  name: u1.small
  labels: {class: general}
  annotations: {display: Small, kubectl.kubernetes.io/last-applied-configuration: "{}"}
spec: {cpu: {guest: 1}, memory: {guest: 2Gi}}
`

// revision returns the ControllerRevision that KubeVirt makes of an object with this content for a VM in team-a.
func revision(t *testing.T, name, of, kind, spec string) *appsv1.ControllerRevision {
	t.Helper()
	made := &appsv1.ControllerRevision{}
	decoded := fixture.Object(t, fmt.Sprintf(`
apiVersion: apps/v1
kind: ControllerRevision
metadata: {namespace: team-a, name: %s, labels: {instancetype.kubevirt.io/object-name: %s, instancetype.kubevirt.io/object-kind: %s}}
data: {apiVersion: instancetype.kubevirt.io/v1beta1, kind: %[3]s, metadata: {name: %[2]s, uid: 7}, spec: %[4]s}
`, name, of, kind, spec))
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(decoded.Object, made); err != nil {
		t.Fatal(err)
	}
	return made
}

func TestResolve(t *testing.T) {
	f := newTestCache(time.Millisecond)
	f.sources[sizing.KindClusterInstancetype].Add(fixture.Object(t, small))
	f.sources[sizing.KindInstancetype].Add(fixture.Object(t, `{metadata: {namespace: team-a, name: own}, spec: {cpu: {guest: 4}}}`))
	f.sources[sizing.KindClusterPreference].Add(fixture.Object(t, `{metadata: {name: linux}, spec: {}}`))
	for _, r := range []*appsv1.ControllerRevision{
		revision(t, "same", "u1.small", sizing.KindClusterInstancetype, `{cpu: {guest: 1}, memory: {guest: 2Gi}}`),
		revision(t, "former", "u1.small", sizing.KindClusterInstancetype, `{cpu: {guest: 64}}`),
		revision(t, "preference", "linux", sizing.KindClusterPreference, `{}`),
		revision(t, "strange", "u1.small", "Pod", `{}`),
		revision(t, "empty", "u1.small", sizing.KindClusterInstancetype, `null`),
	} {
		f.sources[kindRevision].Add(r)
	}
	f.start(t)
	current := map[string]any{
		"kind":     "VirtualMachineClusterInstancetype",
		"metadata": map[string]any{"name": "u1.small", "labels": map[string]any{"class": "general"}, "annotations": map[string]any{"display": "Small"}},
		"spec":     map[string]any{"cpu": map[string]any{"guest": 1.0}, "memory": map[string]any{"guest": "2Gi"}},
	}
	former := map[string]any{
		"kind":     "VirtualMachineClusterInstancetype",
		"metadata": map[string]any{"name": "u1.small", "labels": map[string]any{}, "annotations": map[string]any{}},
		"spec":     map[string]any{"cpu": map[string]any{"guest": 64.0}},
	}
	cluster := sizing.Reference{Kind: sizing.KindClusterInstancetype, Namespace: "team-a", Name: "u1.small"}
	with := func(change func(*sizing.Reference)) sizing.Reference {
		changed := cluster
		changed.Path = field.NewPath("spec", "instancetype")
		change(&changed)
		return changed
	}
	for _, tc := range []struct {
		name      string
		reference sizing.Reference
		want      map[string]any
		wantError string
	}{
		{name: "the object of the cluster", reference: cluster, want: current},
		{
			name:      "the object of the namespace",
			reference: with(func(r *sizing.Reference) { r.Kind, r.Name = sizing.KindInstancetype, "own" }),
			want: map[string]any{
				"kind":     "VirtualMachineInstancetype",
				"metadata": map[string]any{"name": "own", "namespace": "team-a", "labels": map[string]any{}, "annotations": map[string]any{}},
				"spec":     map[string]any{"cpu": map[string]any{"guest": 4.0}},
			},
		},
		{
			name: "one of another namespace is none",
			reference: with(func(r *sizing.Reference) {
				r.Kind, r.Name, r.Namespace = sizing.KindInstancetype, "own", "team-b"
			}),
			wantError: "it does not exist",
		},
		{
			name:      "what does not exist",
			reference: with(func(r *sizing.Reference) { r.Name = "u1.huge" }),
			wantError: "it does not exist",
		},
		{
			name:      "a revision with the content of now has the labels of now",
			reference: with(func(r *sizing.Reference) { r.Revision = "same" }),
			want:      current,
		},
		{
			name:      "a revision with another content says what counts, and has no labels",
			reference: with(func(r *sizing.Reference) { r.Revision = "former" }),
			want:      former,
		},
		{
			name:      "a revision that the status names counts",
			reference: with(func(r *sizing.Reference) { r.Revision, r.Loose = "former", true }),
			want:      former,
		},
		{
			name: "unless the machine names another object by now",
			reference: with(func(r *sizing.Reference) {
				r.Kind, r.Name, r.Revision, r.Loose = sizing.KindInstancetype, "own", "former", true
			}),
			want: map[string]any{
				"kind":     "VirtualMachineInstancetype",
				"metadata": map[string]any{"name": "own", "namespace": "team-a", "labels": map[string]any{}, "annotations": map[string]any{}},
				"spec":     map[string]any{"cpu": map[string]any{"guest": 4.0}},
			},
		},
		{
			name:      "a revision that is not known",
			reference: with(func(r *sizing.Reference) { r.Revision = "never" }),
			wantError: "it does not exist, or KubeVirt did not make it of an instance type or a preference",
		},
		{
			name:      "one that the status names",
			reference: with(func(r *sizing.Reference) { r.Revision, r.Loose = "never", true }),
			wantError: "ControllerRevision never, which its status names: it does not exist, or KubeVirt did not make it of an instance type or a preference",
		},
		{
			name:      "a revision of the other family",
			reference: with(func(r *sizing.Reference) { r.Revision = "preference" }),
			wantError: `it holds a "VirtualMachineClusterPreference" and no instance type`,
		},
		{
			name:      "a revision of something else",
			reference: with(func(r *sizing.Reference) { r.Revision = "strange" }),
			wantError: `it holds a "Pod" and no instance type`,
		},
		{
			name:      "a revision without content",
			reference: with(func(r *sizing.Reference) { r.Revision = "empty" }),
			wantError: "it holds a VirtualMachineClusterInstancetype without a spec",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for name, resolver := range map[string]sizing.Resolver{"patient": f.Cache, "not": f.Cached()} {
				got, err := resolver.Resolve(t.Context(), tc.reference)
				text := ""
				if err != nil {
					text = err.Error()
				}
				if text != tc.wantError {
					t.Errorf("%s: error %q, want %q", name, text, tc.wantError)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
	}
}

func TestWhatComesWhileSomebodyWaitsIsFound(t *testing.T) {
	f := newTestCache(time.Minute)
	f.start(t)
	changed := f.Changed()
	done := make(chan error)
	go func() {
		_, err := f.Resolve(context.WithoutCancel(t.Context()), sizing.Reference{Kind: sizing.KindClusterInstancetype, Namespace: "team-a", Name: "u1.small"})
		done <- err
	}()
	f.sources[kindRevision].Add(revision(t, "same", "u1.small", sizing.KindClusterInstancetype, `{}`))
	fixture.Eventually(t, func() bool { return f.index.kinds[kindRevision].Len() == 1 })
	select {
	case <-changed:
		t.Error("a revision counts as a change")
	default:
	}
	f.sources[sizing.KindClusterInstancetype].Add(fixture.Object(t, small))
	if err := <-done; err != nil {
		t.Error(err)
	}
	<-changed
	f.sources[sizing.KindClusterInstancetype].Delete(fixture.Object(t, small))
	fixture.Eventually(t, func() bool { return f.index.kinds[sizing.KindClusterInstancetype].Len() == 0 })

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Resolve(cancelled, sizing.Reference{Kind: sizing.KindPreference}); err == nil {
		t.Error("what never comes was found")
	}
}

// cluster serves all kinds but one.
type cluster struct {
	discovery.ServerResourcesInterface
	absent atomic.Pointer[schema.GroupVersionResource]
}

func (c *cluster) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	list := &metav1.APIResourceList{}
	for _, kind := range kinds {
		resource := resourceOf(kind)
		if absent := c.absent.Load(); resource.GroupVersion().String() == version && (absent == nil || *absent != resource) {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource.Resource})
		}
	}
	return list, nil
}

// forbidden is a source that may not be read until it is permitted.
type forbidden struct {
	*fakecache.FakeControllerSource
	permitted atomic.Bool
}

func (f *forbidden) List(options metav1.ListOptions) (runtime.Object, error) {
	if !f.permitted.Load() {
		return nil, apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	}
	return f.FakeControllerSource.List(options)
}

func (f *forbidden) Watch(options metav1.ListOptions) (watch.Interface, error) {
	if !f.permitted.Load() {
		return nil, apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	}
	return f.FakeControllerSource.Watch(options)
}

func TestAKindThatIsNotServedIsEmptyUntilItIs(t *testing.T) {
	resource := resourceOf(sizing.KindClusterInstancetype)
	for _, tc := range []struct {
		name       string
		absent     *schema.GroupVersionResource
		permitted  bool
		wantSynced bool
		wantError  string
	}{
		{"not served", &resource, true, true, "it does not exist"},
		{"not to be read", nil, false, false, "the cache of instance types and preferences is not synced; try again in a moment"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			source := &forbidden{FakeControllerSource: fakecache.NewFakeControllerSource()}
			source.permitted.Store(tc.permitted)
			source.Add(fixture.Object(t, small))
			sources := map[string]cache.ListerWatcher{sizing.KindClusterInstancetype: source}
			for _, kind := range kinds {
				if sources[kind] == nil {
					sources[kind] = fakecache.NewFakeControllerSource()
				}
			}
			served := &cluster{}
			served.absent.Store(tc.absent)
			f := testCache{Cache: newCache(Options{Logger: logr.Discard(), WaitTimeout: time.Millisecond}, served, sources)}
			for i := range f.watches {
				f.watches[i].Interval = time.Millisecond
			}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = f.Start(ctx)
			}()
			defer func() { cancel(); <-done }()
			fixture.Eventually(t, func() bool {
				for kind, of := range f.index.kinds {
					if kind != sizing.KindClusterInstancetype && !of.Synced() {
						return false
					}
				}
				return true
			})
			if tc.wantSynced {
				fixture.Eventually(t, f.Synced)
			} else if f.Synced() {
				t.Error("it is synced")
			}
			reference := sizing.Reference{Kind: sizing.KindClusterInstancetype, Name: "u1.small"}
			if _, err := f.Resolve(t.Context(), reference); err == nil || err.Error() != tc.wantError {
				t.Errorf("error %v, want %s", err, tc.wantError)
			}
			served.absent.Store(nil)
			source.permitted.Store(true)
			fixture.Eventually(t, func() bool { _, err := f.Resolve(t.Context(), reference); return err == nil && f.Synced() })
		})
	}
}

func TestEqualRevisionsAreStoredOnce(t *testing.T) {
	var known, other contents
	var handles []any
	for name, with := range map[string]*contents{"vm-1": &known, "vm-2": &known, "vm-3": &other} {
		e, err := revisionEntry(revision(t, name, "u1.small", sizing.KindClusterInstancetype, `{cpu: {guest: 1}}`), with)
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, e.content)
	}
	if handles[0] != handles[1] || handles[1] != handles[2] {
		t.Error("they have contents of their own")
	}
}

func TestContentsOfRevisions(t *testing.T) {
	var known contents
	for _, tc := range []struct{ name, data, want string }{
		{
			name: "the metadata that policies read, and the spec",
			data: `{"apiVersion":"instancetype.kubevirt.io/v1beta1","kind":"VirtualMachineInstancetype","metadata":{"name":"own","namespace":"team-a","uid":"7"},"spec":{"cpu":{"guest":1}}}`,
			want: `{"kind":"VirtualMachineInstancetype","metadata":{"name":"own","namespace":"team-a"},"spec":{"cpu":{"guest":1}}}`,
		},
		{name: "other white space", data: "{\"kind\": \"A\",\n\"spec\": {\"a\": [1, 2]}}", want: `{"kind":"A","metadata":{},"spec":{"a":[1,2]}}`},
		{name: "fields in another case are other fields", data: `{"Kind":"A","kind":"B","SPEC":{}}`, want: `{"kind":"B","metadata":{},"spec":null}`},
		{name: "the last of two fields counts", data: `{"kind":"A","kind":"B","spec":{}}`, want: `{"kind":"B","metadata":{},"spec":{}}`},
		{name: "null", data: `{"kind":null,"metadata":{"name":null},"spec":null}`, want: `{"kind":null,"metadata":{},"spec":null}`},
		{name: "metadata that is no object", data: `{"kind":"A","metadata":[1],"spec":{}}`, want: `{"kind":"A","metadata":{},"spec":{}}`},
		{name: "a list", data: `[1]`, want: `{"kind":null,"metadata":{},"spec":null}`},
		{name: "nothing", data: ``, want: `{"kind":null,"metadata":{},"spec":null}`},
	} {
		for range 2 { // the second time from the memory
			got, err := known.of([]byte(tc.data))
			if err != nil || got.Value() != tc.want {
				t.Errorf("%s: got  %s, %v\nwant %s", tc.name, got.Value(), err, tc.want)
			}
		}
	}
	for number := range maximumContents + 10 {
		if _, err := known.of([]byte(strconv.Itoa(number))); err != nil {
			t.Fatal(err)
		}
	}
	if large, err := known.of([]byte(`"` + strings.Repeat("a", largestContent) + `"`)); err != nil || large.Value() != `{"kind":null,"metadata":{},"spec":null}` {
		t.Errorf("got %v, %v", large, err)
	}
	if len(known.known) > maximumContents {
		t.Errorf("%d results are retained", len(known.known))
	}
}

func TestMetrics(t *testing.T) {
	f := newTestCache(time.Minute)
	f.sources[sizing.KindClusterInstancetype].Add(fixture.Object(t, small))
	f.start(t)
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{index: f.index})
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("metric names: %v %v", problems, err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			got[name] = metric.GetGauge().GetValue()
		}
	}
	raw, _ := json.Marshal(got)
	want := `{"stencil_instancetype_cache_objects ControllerRevision":0,"stencil_instancetype_cache_objects VirtualMachineClusterInstancetype":1,` +
		`"stencil_instancetype_cache_objects VirtualMachineClusterPreference":0,"stencil_instancetype_cache_objects VirtualMachineInstancetype":0,` +
		`"stencil_instancetype_cache_objects VirtualMachinePreference":0,"stencil_instancetype_cache_synced":1}`
	if string(raw) != want {
		t.Errorf("got %s", raw)
	}
}

func TestSizes(t *testing.T) {
	f := newTestCache(time.Millisecond)
	f.sources[sizing.KindClusterInstancetype].Add(fixture.Object(t, small))
	f.sources[sizing.KindInstancetype].Add(fixture.Object(t, `{metadata: {namespace: team-a, name: own}, spec: {cpu: {guest: 4}, memory: {guest: 1Gi}}}`))
	for _, r := range []*appsv1.ControllerRevision{
		revision(t, "former", "u1.small", sizing.KindClusterInstancetype, `{cpu: {guest: 64}, memory: {guest: 1Ki}}`),
		revision(t, "again", "u1.small", sizing.KindClusterInstancetype, `{cpu: {guest: 64}, memory: {guest: 1Ki}}`),
		revision(t, "empty", "u1.small", sizing.KindClusterInstancetype, `null`),
		revision(t, "wrong", "u1.small", sizing.KindClusterInstancetype, `{cpu: many}`),
	} {
		f.sources[kindRevision].Add(r)
	}
	cluster := sizing.Reference{Kind: sizing.KindClusterInstancetype, Namespace: "team-a", Name: "u1.small"}
	if _, err := f.Size(cluster); err == nil || err.Error() != errUnsynced.Error() {
		t.Errorf("before the first list: %v", err)
	}
	f.start(t)
	of := func(revision string, loose bool) sizing.Reference {
		r := cluster
		r.Revision, r.Loose = revision, loose
		return r
	}
	for range 2 { // the second time from the memory
		for _, tc := range []struct {
			name      string
			reference sizing.Reference
			want      sizing.Size
			wantError string
		}{
			{name: "an instance type of the cluster", reference: cluster, want: sizing.Size{CPUs: 1, Memory: 2 << 30}},
			{name: "one of the namespace", reference: sizing.Reference{Kind: sizing.KindInstancetype, Namespace: "team-a", Name: "own"}, want: sizing.Size{CPUs: 4, Memory: 1 << 30}},
			{name: "one of another namespace", reference: sizing.Reference{Kind: sizing.KindInstancetype, Namespace: "team-b", Name: "own"}, wantError: "it does not exist"},
			{name: "a revision", reference: of("former", false), want: sizing.Size{CPUs: 64, Memory: 1024}},
			{name: "one of equal content", reference: of("again", true), want: sizing.Size{CPUs: 64, Memory: 1024}},
			{name: "a revision that does not exist", reference: of("none", false), wantError: errRevision.Error()},
			{name: "a revision without a spec", reference: of("empty", false), wantError: "it holds a VirtualMachineClusterInstancetype without a spec"},
			{name: "a revision that cannot be read", reference: of("wrong", false), wantError: "reading the instance type: json: cannot unmarshal string into Go struct field VirtualMachineInstancetypeSpec.cpu of type v1beta1.CPUInstancetype"},
		} {
			got, err := f.Size(tc.reference)
			if got != tc.want || (err == nil) != (tc.wantError == "") || err != nil && err.Error() != tc.wantError {
				t.Errorf("%s: got %+v, %v; want %+v, %q", tc.name, got, err, tc.want, tc.wantError)
			}
		}
	}
	written := f.Written()
	f.sources[kindRevision].Add(revision(t, "none", "u1.small", sizing.KindClusterInstancetype, `{cpu: {guest: 2}, memory: {guest: 1Ki}}`))
	<-written
	if got, err := f.Size(of("none", false)); err != nil || got.CPUs != 2 {
		t.Errorf("a revision that has arrived: %+v, %v", got, err)
	}
}
