package watching_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/vmstencil/stencil/cache/watching"
)

// pages is a client that returns one object in each page of a list, and passes on events.
type pages struct {
	dynamic.ResourceInterface
	objects []*unstructured.Unstructured
	events  *watch.FakeWatcher
	limits  []int64
	options metav1.ListOptions
}

func (p *pages) List(_ context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	p.limits = append(p.limits, options.Limit)
	p.options = options
	list := &unstructured.UnstructuredList{}
	list.SetResourceVersion("7")
	next := len(options.Continue)
	list.Items = append(list.Items, *p.objects[next])
	if next+1 < len(p.objects) {
		list.SetContinue(options.Continue + "x")
	}
	return list, nil
}

func (p *pages) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil {
		// The response of an API server that does not stream lists.
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
	}
	return p.events, nil
}

func object(name, value string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": value, "large": "forgotten"}}}
	o.SetNamespace("a")
	o.SetName(name)
	o.SetResourceVersion("8")
	return o
}

func TestReducedReadsPageByPageAndKeepsOnlyTheValue(t *testing.T) {
	client := &pages{objects: []*unstructured.Unstructured{object("one", "1"), object("two", "2"), object("three", "3")}, events: watch.NewFake()}
	source := watching.Reduced(client, watching.Selector{Labels: "a=b"}, func(o *unstructured.Unstructured) string {
		value, _, _ := unstructured.NestedString(o.Object, "spec", "value")
		return value
	})
	x := watching.NewIndex(watching.Options[*watching.Object[string], string]{
		Kind:    "things",
		Convert: func(o *watching.Object[string], _ string, _ bool) (string, error) { return o.Value, nil },
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		watching.Run(ctx, logr.Discard(), watching.Reflector("things", source, &watching.Object[string]{}, x, logr.Discard()))
	}()
	eventually(t, "the list is stored", x.Synced)
	if diff := cmp.Diff([]string{"1", "3", "2"}, x.In("a")); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if len(client.limits) != 3 || client.limits[0] == 0 || client.options.LabelSelector != "a=b" {
		t.Errorf("limits %v, options %v", client.limits, client.options)
	}
	client.events.Modify(object("one", "5"))
	client.events.Delete(object("two", "2"))
	eventually(t, "the events are stored", func() bool { return cmp.Equal([]string{"5", "3"}, x.In("a")) })
	cancel()
	<-ended
}

func TestABookmarkStaysOne(t *testing.T) {
	client := &pages{events: watch.NewFake()}
	source := watching.Reduced(client, watching.Selector{}, func(*unstructured.Unstructured) string { return "" })
	events, err := source.Watch(metav1.ListOptions{}) //nolint:staticcheck // the reflector calls the method with a context
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	bookmark := object("", "")
	bookmark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true", "large": "forgotten"})
	go client.events.Action(watch.Bookmark, bookmark)
	got := (<-events.ResultChan()).Object.(*watching.Object[string])
	if diff := cmp.Diff(map[string]string{metav1.InitialEventsAnnotationKey: "true"}, got.Annotations); diff != "" || got.ResourceVersion != "8" {
		t.Errorf("version %s (-want +got):\n%s", got.ResourceVersion, diff)
	}
	if copied := got.DeepCopyObject(); !cmp.Equal(copied, got) {
		t.Errorf("a copy differs: %v", copied)
	}
}

func TestAnnotations(t *testing.T) {
	for name, tc := range map[string]struct{ annotations, want map[string]string }{
		"none":                         {},
		"a copy of the manifest":       {map[string]string{"a": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}"}, map[string]string{"a": "b"}},
		"those without one are shared": {map[string]string{"a": "b"}, map[string]string{"a": "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &metav1.ObjectMeta{Annotations: tc.annotations}
			before := len(tc.annotations)
			if diff := cmp.Diff(tc.want, watching.Annotations(o)); diff != "" || len(o.Annotations) != before {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
