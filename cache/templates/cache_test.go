package templates

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	fakecache "k8s.io/client-go/tools/cache/testing"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/template"
)

func vmt(name string, generation int64, virtualMachine string) *v1beta1.VirtualMachineTemplate {
	return &v1beta1.VirtualMachineTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "golden", Name: name, UID: types.UID("uid-" + name), Generation: generation},
		Spec: v1beta1.VirtualMachineTemplateSpec{
			VirtualMachine: &runtime.RawExtension{Raw: []byte(virtualMachine)},
		},
	}
}

const (
	valid   = `{"spec":{"runStrategy":"Halted","template":{"spec":{"domain":{"devices":{}}}}}}`
	invalid = `{"spec":{"runStrategy":"${NOWHERE}","template":{"spec":{"domain":{"devices":{}}}}}}`
)

// start runs a cache with a source that the test controls.
func start(t *testing.T, initial ...*v1beta1.VirtualMachineTemplate) (*Cache, *fakecache.FakeControllerSource) {
	t.Helper()
	source := fakecache.NewFakeControllerSource()
	for _, object := range initial {
		source.Add(object)
	}
	c := newCache(source, testr.New(t))
	fixture.Run(t, c.Start)
	fixture.Eventually(t, c.Synced)
	return c, source
}

func TestTheCacheFollowsTheTemplates(t *testing.T) {
	c, source := start(t, vmt("fedora", 1, valid), vmt("broken", 1, invalid))

	fedora := c.Get("golden", "fedora")
	if compiled, err := fedora.Compiled(); err != nil || compiled == nil {
		t.Fatalf("a valid template: %v, %v", compiled, err)
	}
	var refusal *template.InvalidError
	if _, err := c.Get("golden", "broken").Compiled(); !errors.As(err, &refusal) {
		t.Errorf("a template that does not compile is kept with %v", err)
	}
	if got := c.Get("golden", "nowhere"); got != nil {
		t.Errorf("a template that is not there: %v", got)
	}
	if got := c.Get("elsewhere", "fedora"); got != nil {
		t.Errorf("a template of another namespace: %v", got)
	}

	source.Modify(vmt("fedora", 2, invalid))
	fixture.Eventually(t, func() bool { return c.Get("golden", "fedora").Generation == 2 })
	if _, err := c.Get("golden", "fedora").Compiled(); err == nil {
		t.Error("the new content was not compiled")
	}
	if _, err := fedora.Compiled(); err != nil {
		t.Errorf("what was handed out before has changed: %v", err)
	}

	source.Delete(vmt("fedora", 2, invalid))
	fixture.Eventually(t, func() bool { return c.Get("golden", "fedora") == nil })
}

func TestATemplateOfTheSameGenerationIsNotCompiledAgain(t *testing.T) {
	c, source := start(t, vmt("fedora", 1, valid))
	before, _ := c.Get("golden", "fedora").Compiled()

	labelled := vmt("fedora", 1, valid)
	labelled.Labels = map[string]string{"tier": "gold"}
	source.Modify(labelled)
	fixture.Eventually(t, func() bool { return c.Get("golden", "fedora").Labels()["tier"] == "gold" })
	if after, _ := c.Get("golden", "fedora").Compiled(); after != before {
		t.Error("it was compiled again")
	}

	recreated := vmt("fedora", 1, valid)
	recreated.UID = "another"
	source.Modify(recreated)
	fixture.Eventually(t, func() bool { return c.Get("golden", "fedora").UID == "another" })
	if after, _ := c.Get("golden", "fedora").Compiled(); after == before {
		t.Error("another object of the same name was taken for the old one")
	}
}

func TestTemplatesOfTheFirstListAreCompiledWhenTheyAreNeeded(t *testing.T) {
	c := newCache(fakecache.NewFakeControllerSource(), testr.New(t))
	waiting, err := c.convert(vmt("fedora", 1, valid), nil, false)
	if err != nil || waiting.content.compiled != nil {
		t.Fatalf("compiled before the list has arrived, or %v", err)
	}
	labelled := waiting.withMetadataOf(vmt("fedora", 1, valid), &c.texts)
	results := make([]*template.Compiled, 8)
	var users sync.WaitGroup
	for i := range results {
		users.Go(func() { results[i], _ = labelled.Compiled() })
	}
	users.Wait()
	if slices.Contains(results, nil) || len(slices.Compact(results)) != 1 {
		t.Errorf("compiled more than once, or not: %v", results)
	}
	if waiting.content.compiled != results[0] || waiting.content.spec != nil {
		t.Error("the spec is retained after it was compiled, or not shared")
	}
}

func TestTheFirstListIsCompiledAfterItHasArrived(t *testing.T) {
	c, _ := start(t, vmt("fedora", 1, valid), vmt("broken", 1, invalid))
	c.compileFirst(t.Context())
	for _, each := range c.List() {
		if each.content.compiled == nil && each.content.invalid == nil {
			t.Errorf("%s is not compiled", each.Name)
		}
	}
}

func TestWait(t *testing.T) {
	t.Run("a template that arrives in time is returned", func(t *testing.T) {
		c, source := start(t)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if got := c.Wait(context.Background(), "golden", "late", time.Minute); got == nil {
					t.Error("it was not seen")
				}
			})
		}
		source.Add(vmt("other", 1, valid))
		source.Add(vmt("late", 1, valid))
		wg.Wait()
	})
	t.Run("one that never comes is nil after the time is over", func(t *testing.T) {
		c, _ := start(t)
		if got := c.Wait(context.Background(), "golden", "never", time.Millisecond); got != nil {
			t.Errorf("got %v", got)
		}
	})
	t.Run("a cancelled call leaves nothing behind", func(t *testing.T) {
		c, _ := start(t)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if got := c.Wait(ctx, "golden", "never", time.Hour); got != nil {
			t.Errorf("got %v", got)
		}
	})
}

func TestChanged(t *testing.T) {
	labelled := vmt("fedora", 1, valid)
	labelled.Labels = map[string]string{"tier": "gold"}
	annotated := vmt("fedora", 1, valid)
	annotated.Annotations = map[string]string{"deprecated": "use ubuntu"}
	touched := vmt("fedora", 1, valid)
	touched.ResourceVersion = "7"
	touched.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", contract.AnnotationExtensions: "{}"}
	for _, tc := range []struct {
		name   string
		change func(s cache.ReflectorStore) error
		want   bool
	}{
		{"a template that comes is a change", func(s cache.ReflectorStore) error { return s.Add(vmt("ubuntu", 1, valid)) }, true},
		{"one that goes is", func(s cache.ReflectorStore) error { return s.Delete(vmt("fedora", 1, valid)) }, true},
		{"another content is", func(s cache.ReflectorStore) error { return s.Update(vmt("fedora", 2, valid)) }, true},
		{"other labels are", func(s cache.ReflectorStore) error { return s.Update(labelled) }, true},
		{"other annotations are", func(s cache.ReflectorStore) error { return s.Update(annotated) }, true},
		{"a list after a lost watch may be", func(s cache.ReflectorStore) error { return s.Replace(nil, "1") }, true},
		{"a write that changes none of them is none, kubectl's bookkeeping among it", func(s cache.ReflectorStore) error { return s.Update(touched) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCache(fakecache.NewFakeControllerSource(), testr.New(t))
			s := c.index
			if err := s.Add(vmt("fedora", 1, valid)); err != nil {
				t.Fatal(err)
			}
			changed := c.Changed()
			if err := tc.change(s); err != nil {
				t.Fatal(err)
			}
			got := false
			select {
			case <-changed:
				got = true
			default:
			}
			if got != tc.want {
				t.Errorf("change announced: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestReadersAndWritersAtOnce(t *testing.T) {
	c, source := start(t, vmt("fedora", 1, valid))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if got := c.Get("golden", "fedora"); got != nil {
						if _, err := got.Compiled(); err != nil {
							t.Error(err)
							return
						}
					}
				}
			}
		})
	}
	for generation := range int64(200) {
		source.Modify(vmt("fedora", generation+2, valid))
	}
	fixture.Eventually(t, func() bool { return c.Get("golden", "fedora").Generation == 201 })
	close(stop)
	wg.Wait()
}

func TestMetrics(t *testing.T) {
	c, _ := start(t, vmt("fedora", 1, valid), vmt("ubuntu", 1, valid), vmt("broken", 1, invalid))
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{cache: c})
	for _, tc := range []struct {
		labels string
		want   float64
	}{{"true", 2}, {"false", 1}} {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := -1.0
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				if family.GetName() == "stencil_template_cache_templates" && metric.GetLabel()[0].GetValue() == tc.labels {
					got = metric.GetGauge().GetValue()
				}
			}
		}
		if got != tc.want {
			t.Errorf("templates with valid=%s: %v, want %v", tc.labels, got, tc.want)
		}
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("metric names: %v %v", problems, err)
	}
}

func TestTheStoreRefusesWhatIsNoTemplate(t *testing.T) {
	s := newCache(fakecache.NewFakeControllerSource(), testr.New(t)).index
	for name, err := range map[string]error{
		"add":     s.Add(&metav1.PartialObjectMetadata{}),
		"replace": s.Replace([]any{fmt.Sprint()}, "1"),
		"delete":  s.Delete(42),
	} {
		if err == nil {
			t.Errorf("%s took it", name)
		}
	}
	if s.Synced() {
		t.Error("a list that could not be read counts as read")
	}
}

func TestListenersReceiveEveryTemplate(t *testing.T) {
	c := newCache(fakecache.NewFakeControllerSource(), testr.New(t))
	s := c.index
	if err := s.Add(vmt("fedora", 1, valid)); err != nil {
		t.Fatal(err)
	}
	var received []string
	c.Listen(func(key types.NamespacedName, t *Template) {
		received = append(received, fmt.Sprint(key.Name, t != nil))
	})
	written := vmt("fedora", 1, valid)
	written.Status.Conditions = []metav1.Condition{{Type: "Ready"}}
	for _, err := range []error{
		s.Add(vmt("ubuntu", 1, valid)), s.Update(written), s.Delete(vmt("ubuntu", 1, valid)), s.Replace(nil, "1"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := "[fedoratrue ubuntutrue fedoratrue ubuntufalse fedorafalse]"; fmt.Sprint(received) != want {
		t.Errorf("received %v, want %s", received, want)
	}
}

func TestTheDigestTellsStatusesApart(t *testing.T) {
	one := vmt("fedora", 1, valid)
	if got := Compile(one).Sources; got != 0 {
		t.Errorf("of nothing: %d", got)
	}
	one.Status.Volumes = []v1beta1.TemplateVolume{{Volume: "root"}}
	other := one.DeepCopy()
	other.Status.Volumes[0].State = v1beta1.SourceReady
	a, b := Compile(one).Sources, Compile(other).Sources
	if a == b || a == 0 || b == 0 || a != Compile(one.DeepCopy()).Sources {
		t.Errorf("digests %d and %d", a, b)
	}
}
