package policies

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	fakecache "k8s.io/client-go/tools/cache/testing"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/await"
	"github.com/vmstencil/stencil/internal/fixture"
)

// fields are fake Schemas of an engine.
type fields struct {
	await.Signal
	engine *engine
	// read unblocks Await.
	read chan struct{}
}

func (f *fields) Await(ctx context.Context) {
	select {
	case <-f.read:
	case <-ctx.Done():
	}
}

// become changes the field that the schemas have.
func (f *fields) become(field string) {
	f.engine.known.Store(&field)
	f.Send()
}

// following returns a cache with fake schemas that have been read.
func following(t *testing.T, field string, first ...*v1alpha1.VirtualMachinePolicy) (*Cache, *fields, *fakecache.FakeControllerSource) {
	t.Helper()
	f := &fields{engine: &engine{release: make(chan struct{})}, read: make(chan struct{})}
	close(f.read)
	f.become(field)
	source := fakecache.NewFakeControllerSource()
	t.Cleanup(source.Shutdown)
	for _, object := range first {
		source.Add(object)
	}
	c := newCache(Options{Logger: logr.Discard(), Schemas: f}, source, f.engine.builder(time.Minute))
	fixture.Run(t, c.Start)
	return c, f, source
}

func TestPoliciesBecomeValidWithTheSchemas(t *testing.T) {
	c, f, _ := following(t, "old", vmpol("a", "reading new", 1), vmpol("b", "reading new", 1, "passes", "fails"), vmpol("c", "broken", 1),
		lastGood(vmpol("d", "reading new", 2), 1, `{"rego":"before"}`), vmpol("e", "x", 1))
	becomes(t, c, "a", "broken built 1 problem unknown field new")
	becomes(t, c, "b", "broken built 1 problem unknown field new")
	becomes(t, c, "d", "lastGood built 2 in force 1 digest of before problem unknown field new")
	synced(t, c)
	before := f.engine.compiled.Load()
	f.become("new")
	becomes(t, c, "a", "active built 1 in force 1 digest of reading new")
	// Its tests have not been dropped.
	becomes(t, c, "b", "inactive built 1 failed fails")
	becomes(t, c, "d", "active built 2 in force 2 digest of reading new")
	becomes(t, c, "c", "broken built 1 problem broken")
	if count := f.engine.compiled.Load() - before; count != 3 {
		t.Errorf("compiled %d times, want only the 3 policies that the schemas make valid", count)
	}
}

func TestPoliciesStayActiveWithoutTheirFields(t *testing.T) {
	c, f, source := following(t, "new", vmpol("a", "reading new", 1, "passes"))
	synced(t, c)
	before := c.Set()
	f.become("old")
	// Another policy shows that the change has been observed.
	source.Add(vmpol("b", "reading new", 1))
	becomes(t, c, "b", "broken built 1 problem unknown field new")
	becomes(t, c, "a", "active built 1 in force 1 digest of reading new")
	if got := c.Set().Entries()[0].Policy; got != before.Entries()[0].Policy {
		t.Error("the policy was compiled again")
	}
	source.Modify(vmpol("a", "reading new ", 2))
	becomes(t, c, "a", "lastGood built 2 in force 1 digest of reading new problem unknown field new ")
}

func TestPoliciesStayActiveWithoutTheirFieldsAfterAStart(t *testing.T) {
	was := func(generation int64, object *v1alpha1.VirtualMachinePolicy) *v1alpha1.VirtualMachinePolicy {
		object.Status.ActiveGeneration = generation
		return object
	}
	c, _, _ := following(t, "old", was(3, vmpol("a", "reading new", 3)), was(2, vmpol("b", "reading new", 3)), vmpol("c", "reading new", 3),
		lastGood(vmpol("d", "broken", 4), 3, `{"rego":"reading new"}`), was(3, vmpol("e", "broken", 3)))
	synced(t, c)
	for name, want := range map[string]string{
		"a": "active built 3 in force 3 digest of reading new",
		"b": "broken built 3 problem unknown field new",
		"c": "broken built 3 problem unknown field new",
		"d": "lastGood built 4 in force 3 digest of reading new problem broken",
		"e": "broken built 3 problem broken",
	} {
		if got := summary(c, name); got != want {
			t.Errorf("policy %s is %q, want %q", name, got, want)
		}
	}
	// A new version is checked, unless it changes neither module nor parameters.
	trial, err := c.Try(t.Context(), was(3, vmpol("a", "reading new ", 4)))
	if err != nil || len(trial.Problems) != 1 || trial.Active == nil {
		t.Errorf("another module: %+v, %v", trial, err)
	}
	warning := was(3, vmpol("a", "reading new", 4))
	warning.Spec.Enforcement = v1alpha1.EnforcementWarn
	trial, err = c.Try(t.Context(), warning)
	if err != nil || len(trial.Problems) != 0 || trial.Entry == nil {
		t.Errorf("another enforcement: %+v, %v", trial, err)
	}
}

func TestSchemasThatChangeDuringACompilation(t *testing.T) {
	c, f, _ := following(t, "old", vmpol("a", "late new", 1))
	fixture.Succeeds(t, func() error {
		if f.engine.compiled.Load() == 0 {
			return errors.New("it is not compiled")
		}
		return nil
	})
	f.become("new")
	close(f.engine.release)
	becomes(t, c, "a", "active built 1 in force 1 digest of late new")
	if count := f.engine.compiled.Load(); count != 2 {
		t.Errorf("compiled %d times, want 2", count)
	}
}

func TestNoPolicyIsCompiledBeforeTheSchemasAreRead(t *testing.T) {
	f := &fields{engine: &engine{}, read: make(chan struct{})}
	source := fakecache.NewFakeControllerSource()
	t.Cleanup(source.Shutdown)
	source.Add(vmpol("a", "reading new", 1))
	c := newCache(Options{Logger: logr.Discard(), Schemas: f}, source, f.engine.builder(time.Minute))
	fixture.Run(t, c.Start)
	f.become("new")
	if c.Synced() || f.engine.compiled.Load() != 0 {
		t.Error("a policy was compiled before")
	}
	close(f.read)
	becomes(t, c, "a", "active built 1 in force 1 digest of reading new")
}
