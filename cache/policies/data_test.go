package policies

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	fakecache "k8s.io/client-go/tools/cache/testing"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/await"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/rego"
)

// values is a fake source of values: one text for all references.
type values struct {
	mutex   sync.Mutex
	text    string // empty before it is synced
	calls   int    // of Bind
	changed await.Signal
}

func (v *values) bound() int {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.calls
}

func (v *values) set(text string) {
	v.mutex.Lock()
	v.text = text
	v.mutex.Unlock()
	v.changed.Send()
}

func (v *values) get() string {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.text
}

func (v *values) Ready([]rego.Reference) bool { return v.get() != "" }
func (v *values) Changed() <-chan struct{}    { return v.changed.Changed() }
func (v *values) Bind(references []rego.Reference) []rego.Binding {
	v.mutex.Lock()
	v.calls++
	v.mutex.Unlock()
	bindings := make([]rego.Binding, len(references))
	for i, reference := range references {
		value, err := rego.NewValue(v.get())
		bindings[i] = rego.Binding{Name: reference.Name, Value: value}
		if err != nil || v.get() == "missing" {
			bindings[i] = rego.Binding{Name: reference.Name, Missing: "it is missing"}
		}
	}
	return bindings
}

func reading(name string) *v1alpha1.VirtualMachinePolicy {
	object := vmpol(name, "package p\n\ndeny contains data.cluster.word if true\n", 1)
	object.Spec.Data = []v1alpha1.PolicyData{{Name: "word", ConfigMapKey: &v1alpha1.PolicyConfigMapKey{Name: "a", Key: "b"}}}
	return object
}

// finds returns what the only policy finds.
func finds(t *testing.T, c *Cache) string {
	t.Helper()
	if c.Set().Len() != 1 {
		return ""
	}
	in, err := rego.NewInput(rego.Document{Request: rego.Request{Kind: "VirtualMachine"}})
	if err != nil {
		t.Fatal(err)
	}
	decision := c.Evaluator().Evaluate(t.Context(), c.Set().Entries(), in)
	if len(decision.Denials) != 1 {
		t.Fatalf("got %+v", decision)
	}
	return decision.Denials[0].Message
}

// newReading returns a cache with values, and the source of its policies.
func newReading(t *testing.T) (*Cache, *fakecache.FakeControllerSource, *values) {
	t.Helper()
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	source, data := fakecache.NewFakeControllerSource(), &values{}
	c := newCache(Options{Logger: logr.Discard(), Data: data}, source, newBuilder(compiler, nil, time.Minute, logr.Discard()))
	return c, source, data
}

func TestValuesOfPolicies(t *testing.T) {
	c, source, data := newReading(t)
	source.Add(reading("a"))
	fixture.Run(t, c.Start)
	fixture.Eventually(t, func() bool { s := c.States(); return len(s) == 1 && s[0].Active != nil })
	if c.Synced() || c.Set().Len() != 0 {
		t.Error("the policy is active before its values are read")
	}
	data.set("one")
	fixture.Eventually(t, c.Synced)
	fixture.Eventually(t, func() bool { return finds(t, c) == "one" })

	set, changed := c.Set(), c.Changed()
	data.set("two")
	<-changed
	if got := finds(t, c); got != "two" {
		t.Errorf("after a change: %q", got)
	}
	if set.Entries()[0].Policy.Digest() != c.Set().Entries()[0].Policy.Digest() {
		t.Error("a value changes the digest of the policy")
	}
	set = c.Set()
	data.set("two")
	trial, err := c.Try(context.Background(), reading("b"))
	if err != nil || trial.Entry == nil || string(trial.Entry.Policy.(*rego.Policy).Data()[0].Value.JSON()) != `"two"` {
		t.Errorf("a trial: %+v, %v", trial, err)
	}
	if c.Set() != set {
		t.Error("another set is published for the same values")
	}
	changed = c.Changed()
	data.set("missing")
	<-changed
	if got := finds(t, c); got != "could not be evaluated: data.cluster.word has no value: it is missing" {
		t.Errorf("without a value: %q", got)
	}
}

// A policy that is the first to need values waits for them: its former version stays active, and no request is denied for lack of a value.
func TestAPolicyWaitsForItsValues(t *testing.T) {
	c, source, data := newReading(t)
	former := vmpol("a", "package p\n\ndeny contains \"former\" if true\n", 1)
	source.Add(former)
	fixture.Run(t, c.Start)
	fixture.Eventually(t, c.Synced)
	if got := finds(t, c); got != "former" {
		t.Fatalf("got %q", got)
	}
	next := reading("a")
	next.UID, next.Generation = former.UID, 2
	source.Modify(next)
	awaiting := time.Now()
	fixture.Eventually(t, func() bool { return data.bound() > 0 })
	if got := finds(t, c); got != "former" && time.Since(awaiting) < readTimeout {
		t.Errorf("before the values are read: %q", got)
	}
	data.set("one")
	fixture.Eventually(t, func() bool { return finds(t, c) == "one" })
}

// Values that are never read do not hold the policy up for ever: it is evaluated without them.
func TestWaitingForValuesEnds(t *testing.T) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	source := fakecache.NewFakeControllerSource()
	c := newCache(Options{Logger: logr.Discard(), Data: &values{}}, source, newBuilder(compiler, nil, time.Minute, logr.Discard()))
	fixture.Run(t, c.Start)
	fixture.Eventually(t, c.Synced)
	begin := time.Now()
	trial, err := c.Try(t.Context(), reading("a"))
	if err != nil || trial.Entry == nil || time.Since(begin) < readTimeout {
		t.Errorf("a trial: %+v, %v, after %s", trial, err, time.Since(begin))
	}
}
