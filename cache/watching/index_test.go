package watching_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/cache/watching"
)

type index = watching.Index[*metav1.PartialObjectMetadata, string]

// newIndex returns an index of the labels "value", and a function that returns the updates since the last call.
func newIndex() (*index, func() []string) {
	var updates []string
	x := watching.NewIndex(watching.Options[*metav1.PartialObjectMetadata, string]{
		Kind: "things",
		Convert: func(object *metav1.PartialObjectMetadata, stored string, found bool) (string, error) {
			switch value := object.Labels["value"]; value {
			case "bad":
				return "", errors.New("it is bad")
			case "append":
				return fmt.Sprint(stored, "+", found), nil
			default:
				return value, nil
			}
		},
		Equal: func(before, after string) bool { return before == after },
		Changed: func(update watching.Update[string]) {
			text := []string{}
			for _, each := range update.Changes {
				text = append(text, fmt.Sprintf("%s %q %t -> %q %t", each.NamespacedName, each.Before, each.Existed, each.After, each.Exists))
			}
			slices.Sort(text)
			updates = append(updates, fmt.Sprint(text, update.Listed, update.First, update.Failed))
		},
	})
	return x, func() []string {
		taken := updates
		updates = nil
		return taken
	}
}

func thing(namespace, name, value string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"value": value}}}
}

func TestIndexFollowsItsReflector(t *testing.T) {
	x, updates := newIndex()
	notServed := apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "")
	for _, step := range []struct {
		name   string
		do     func() error
		want   []string
		stored []string
		synced bool
	}{
		{"the first list", func() error { return x.Replace([]any{thing("a", "one", "1")}, "1") }, []string{`[a/one "" false -> "1" true] true true false`}, []string{"1"}, true},
		{"an object comes", func() error { return x.Add(thing("b", "two", "2")) }, []string{`[b/two "" false -> "2" true] false false false`}, []string{"1", "2"}, true},
		{"one changes", func() error { return x.Update(thing("a", "one", "3")) }, []string{`[a/one "1" true -> "3" true] false false false`}, []string{"2", "3"}, true},
		{"a write that is no change", func() error { return x.Update(thing("a", "one", "3")) }, nil, []string{"2", "3"}, true},
		{"the stored form is known to the conversion", func() error { return x.Update(thing("a", "one", "append")) }, []string{`[a/one "3" true -> "3+true" true] false false false`}, []string{"2", "3+true"}, true},
		{"one goes", func() error { return x.Delete(thing("a", "one", "bad")) }, []string{`[a/one "3+true" true -> "" false] false false false`}, []string{"2"}, true},
		{"one goes that is gone already", func() error { return x.Delete(thing("a", "one", "")) }, nil, []string{"2"}, true},
		{"one goes whose last state is unknown", func() error { return x.Delete(cache.DeletedFinalStateUnknown{Key: "b/two"}) }, []string{`[b/two "2" true -> "" false] false false false`}, nil, true},
		{"a list after a lost watch", func() error { return x.Replace([]any{thing("a", "one", "1"), thing("", "wide", "9")}, "2") }, []string{`[/wide "" false -> "9" true a/one "" false -> "1" true] true false false`}, []string{"1", "9"}, true},
		{"an equal list", func() error { return x.Replace([]any{thing("", "wide", "9"), thing("a", "one", "1")}, "3") }, []string{`[] true false false`}, []string{"1", "9"}, true},
		{"a list without one, and with another", func() error { return x.Replace([]any{thing("a", "one", "2")}, "4") }, []string{`[/wide "9" true -> "" false a/one "1" true -> "2" true] true false false`}, []string{"2"}, true},
		{"another error than that the kind is not served", func() error { x.FailIfNotServed(errors.New("busy")); return x.Problem() }, nil, []string{"2"}, true},
		{"the kind is not served any more", func() error { x.FailIfNotServed(notServed); return nil }, []string{`[a/one "2" true -> "" false] false false true`}, nil, true},
		{"and still not", func() error { x.FailIfNotServed(notServed); return nil }, nil, nil, true},
		{"it is again", func() error { return x.Replace([]any{thing("a", "one", "2")}, "5") }, []string{`[a/one "" false -> "2" true] true true false`}, []string{"2"}, true},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if diff := cmp.Diff(step.want, updates()); diff != "" {
			t.Errorf("%s: updates (-want +got):\n%s", step.name, diff)
		}
		got := x.List()
		slices.Sort(got)
		if diff := cmp.Diff(step.stored, got); diff != "" || x.Len() != len(got) || x.Synced() != step.synced {
			t.Errorf("%s: %d stored, synced: %t (-want +got):\n%s", step.name, x.Len(), x.Synced(), diff)
		}
	}
}

func TestIndexReads(t *testing.T) {
	x, _ := newIndex()
	if x.Synced() || x.Listed() {
		t.Error("it is synced before the first list")
	}
	if err := x.Replace([]any{thing("a", "two", "2"), thing("a", "one", "1"), thing("b", "one", "3")}, "1"); err != nil {
		t.Fatal(err)
	}
	if got, found := x.Get("a", "two"); got != "2" || !found {
		t.Errorf("got %q, %t", got, found)
	}
	if got, found := x.Get("c", "two"); got != "" || found {
		t.Errorf("got %q, %t", got, found)
	}
	if diff := cmp.Diff([]string{"1", "2"}, x.In("a")); diff != "" || len(x.In("c")) > 0 {
		t.Errorf("in a namespace: %s", diff)
	}
	calls := 0
	x.Range(func(types.NamespacedName, string) bool { calls++; return false })
	if calls != 1 {
		t.Errorf("after false there were %d calls", calls)
	}
	x.Fail(errors.New("it may not be read"))
	if x.Listed() || !x.Synced() || x.Problem() == nil || x.Fail(errors.New("it is not served")) || x.Problem().Error() != "it is not served" {
		t.Errorf("listed: %t, synced: %t, problem: %v", x.Listed(), x.Synced(), x.Problem())
	}
}

func TestIndexRejectsOtherTypesAndWhatCannotBeConverted(t *testing.T) {
	x, updates := newIndex()
	transform := x.Transformer()
	_, err := transform(thing("a", "one", "bad"))
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"add":                {x.Add("text"), "the watch of things received a string"},
		"replace":            {x.Replace([]any{thing("a", "one", "1"), 42}, "1"), "the watch of things received a int"},
		"delete":             {x.Delete(42), "reading the name of a deleted object of things: object has no meta: object does not implement the Object interfaces"},
		"a conversion":       {x.Replace([]any{thing("a", "one", "bad")}, "1"), "it is bad"},
		"one while it lists": {err, "it is bad"},
	} {
		if tc.err == nil || tc.err.Error() != tc.want {
			t.Errorf("%s: error %v, want %s", name, tc.err, tc.want)
		}
	}
	if x.Synced() || updates() != nil {
		t.Error("a list that could not be read counts as read")
	}
	// What the transformer returned is accepted as it is.
	transformed, err := transform(thing("a", "one", "1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(x.Replace([]any{transformed}, "1"), x.Delete(transformed)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`[a/one "" false -> "1" true] true true false`, `[a/one "1" true -> "" false] false false false`}, updates()); diff != "" {
		t.Error(diff)
	}
}

func TestIndexIsReadAndWrittenAtOnce(t *testing.T) {
	x, _ := newIndex()
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 200 {
				x.Get("a", "one")
				x.In("a")
				x.List()
				x.Synced()
			}
		})
	}
	for i := range 200 {
		if err := errors.Join(x.Add(thing("a", "one", fmt.Sprint(i))), x.Replace([]any{thing("a", "two", "1")}, "1")); err != nil {
			t.Fatal(err)
		}
	}
	running.Wait()
}
