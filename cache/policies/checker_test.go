package policies

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	fakecache "k8s.io/client-go/tools/cache/testing"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cache/policies/child"
	"github.com/vmstencil/stencil/internal/fixture"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
)

// checker is a fake Checker. The source of a policy selects its behavior.
type checker struct {
	checked atomic.Int32
	// unavailable is why it does not work.
	unavailable atomic.Pointer[error]
}

// awaitCheck waits for a check after a number of checks.
func (c *checker) awaitCheck(t *testing.T, before int32) {
	t.Helper()
	fixture.Succeeds(t, func() error {
		if c.checked.Load() == before {
			return errors.New("nothing is checked")
		}
		return nil
	})
}

func (c *checker) Check(_ context.Context, candidate child.Candidate) (child.Result, error) {
	c.checked.Add(1)
	if err := c.unavailable.Load(); err != nil && *err != nil {
		return child.Result{}, &child.UnavailableError{Err: *err}
	}
	source := candidate.Spec.Rego
	switch {
	case strings.HasPrefix(source, "bomb"):
		return child.Result{Problems: []rego.Problem{{Code: rego.CodeLimit, Message: "compiling it needs more than 256 MiB of memory"}}, Overrun: true}, nil
	case strings.HasPrefix(source, "reading lost") && !candidate.AnyFields:
		return child.Result{Problems: []rego.Problem{{Code: rego.CodeType, Message: "unknown field lost"}}}, nil
	}
	var result child.Result
	for _, each := range candidate.Spec.Tests {
		if strings.HasPrefix(each.Name, "fails") {
			result.Failed = append(result.Failed, suite.Result{Name: each.Name, Failure: "in the child"})
		}
	}
	return result, nil
}

// checkedCache returns a cache that checks policies before it compiles them.
func checkedCache(t *testing.T, first ...*v1alpha1.VirtualMachinePolicy) (*Cache, *fakecache.FakeControllerSource, *checker, *engine) {
	t.Helper()
	source, fake, compiler := fakecache.NewFakeControllerSource(), &checker{}, &engine{}
	t.Cleanup(source.Shutdown)
	for _, object := range first {
		source.Add(object)
	}
	b := compiler.builder(time.Minute)
	b.checker = fake
	return newCache(Options{Logger: logr.Discard()}, source, b), source, fake, compiler
}

func TestPoliciesAreCheckedBeforeTheyAreCompiled(t *testing.T) {
	c, _, fake, compiler := checkedCache(t, vmpol("good", "x", 1, "passes"), vmpol("bad", "bomb", 1), vmpol("failing", "y", 1, "fails"))
	fixture.Run(t, c.Start)
	synced(t, c)
	if compiled, checked := compiler.compiled.Load(), fake.checked.Load(); compiled != 1 || checked != 3 {
		t.Errorf("%d policies were compiled and %d checked, want 1 and 3", compiled, checked)
	}
	for _, s := range c.States() {
		if s.Object.Name == "bad" && (len(s.Problems) != 1 || s.Problems[0].Message != "compiling it needs more than 256 MiB of memory") {
			t.Errorf("problems %v", s.Problems)
		}
		if s.Object.Name == "failing" && (len(s.Failed) != 1 || s.Failed[0].Failure != "in the child") {
			t.Errorf("failed tests %v", s.Failed)
		}
	}
}

func TestWhatNeedsNoCompilationIsNotChecked(t *testing.T) {
	c, _, fake, compiler := checkedCache(t, vmpol("a", "x", 1))
	fixture.Run(t, c.Start)
	synced(t, c)
	other := vmpol("a", "x", 2)
	other.Spec.Enforcement = v1alpha1.EnforcementWarn
	if trial, err := c.Try(t.Context(), other); err != nil || trial.Entry == nil {
		t.Errorf("%+v, %v", trial, err)
	}
	if checked := fake.checked.Load(); checked != 1 {
		t.Errorf("%d checks, want 1", checked)
	}
	// Its tests have changed: they run where they can do no harm.
	if trial, err := c.Try(t.Context(), vmpol("a", "x", 2, "fails")); err != nil || trial.Entry != nil || len(trial.Failed) != 1 {
		t.Errorf("%+v, %v", trial, err)
	}
	if checked, compiled := fake.checked.Load(), compiler.compiled.Load(); checked != 2 || compiled != 1 {
		t.Errorf("%d checks and %d compilations, want 2 and 1", checked, compiled)
	}
}

func TestAVersionThatWasGoodStaysWhenAFieldIsLost(t *testing.T) {
	object := vmpol("a", "reading lost", 3)
	object.Status.ActiveGeneration = 3
	c, _, fake, _ := checkedCache(t, object, vmpol("new", "reading lost", 1))
	fixture.Run(t, c.Start)
	synced(t, c)
	if got := summary(c, "a"); !strings.HasPrefix(got, "active") {
		t.Error(got)
	}
	if got := summary(c, "new"); !strings.HasPrefix(got, "broken") {
		t.Error(got)
	}
	if checked := fake.checked.Load(); checked != 3 {
		t.Errorf("%d checks, want 3", checked)
	}
}

func TestWithoutACheckerNothingNewIsActive(t *testing.T) {
	none, failed := error(nil), errors.New("no processes")
	c, source, fake, _ := checkedCache(t, vmpol("a", "x", 1))
	fake.unavailable.Store(&failed)
	fixture.Run(t, c.Start)
	fake.awaitCheck(t, 0)
	if c.Synced() {
		t.Error("the cache is ready without a policy that it must have")
	}
	const message = "the process that compiles policies is not available: no processes"
	if trial, err := c.Try(t.Context(), vmpol("b", "y", 1)); err == nil || err.Error() != message {
		t.Errorf("%+v, %v, want %s", trial, err, message)
	}
	fake.unavailable.Store(&none)
	synced(t, c)
	// Later, the version that is active stays.
	fake.unavailable.Store(&failed)
	before := fake.checked.Load()
	source.Modify(vmpol("a", "z", 2))
	fake.awaitCheck(t, before)
	if !c.Synced() || c.Set().Len() != 1 || c.Set().Entries()[0].Policy.Digest() != "digest of x" {
		t.Errorf("%v, %s", c.Synced(), summary(c, "a"))
	}
}

func TestTheLastGoodVersionWaitsForAChecker(t *testing.T) {
	none, failed := error(nil), errors.New("no processes")
	object := vmpol("a", "bomb", 2)
	object.Status.LastGood = &v1alpha1.PolicyVersion{Generation: 1, Spec: &runtime.RawExtension{Raw: []byte(`{"rego":"x"}`)}}
	c, _, fake, _ := checkedCache(t, object)
	fake.unavailable.Store(&failed)
	fixture.Run(t, c.Start)
	fake.awaitCheck(t, 0)
	if got := len(c.States()); got > 0 && c.States()[0].Broken != nil {
		t.Error("the policy is broken only because nothing can be checked")
	}
	fake.unavailable.Store(&none)
	synced(t, c)
	if got := summary(c, "a"); !strings.HasPrefix(got, "lastGood") {
		t.Error(got)
	}
}
