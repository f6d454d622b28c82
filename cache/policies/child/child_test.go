package child

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/internal/fixture/hostile"
	"github.com/vmstencil/stencil/policies/library"
	policyspec "github.com/vmstencil/stencil/policies/spec"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/rego/schema"
)

// TestMain is the program of children as well.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Argument {
		os.Exit(Main(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// newRunner returns a Runner whose child ends with the test.
func newRunner(t testing.TB, change ...func(*Options)) *Runner {
	t.Helper()
	schemas, err := schema.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Program: []string{"/proc/self/exe", Argument},
		Schemas: func() *schema.Schemas { return schemas },
		Logger:  logr.Discard(),
		Memory:  func() (int64, error) { return maxMemory, nil },
	}
	for _, each := range change {
		each(&o)
	}
	r := New(o)
	t.Cleanup(func() { stopChild(r) })
	return r
}

func stopChild(r *Runner) {
	r.turn <- struct{}{}
	r.stop()
	<-r.turn
}

// pid returns the process ID of the child, 0 if there is none.
func pid(r *Runner) int {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	if r.child == nil {
		return 0
	}
	return r.child.command.Process.Pid
}

func candidate(source string, tests ...v1alpha1.PolicyTest) Candidate {
	return Candidate{Name: "one", Spec: &v1alpha1.VirtualMachinePolicySpec{Rego: source, Tests: tests}}
}

// check checks a policy and returns the result in one line.
func check(t testing.TB, r *Runner, c Candidate) string {
	t.Helper()
	result, err := r.Check(t.Context(), c)
	var parts []string
	for _, problem := range result.Problems {
		parts = append(parts, problem.Code+": "+problem.String())
	}
	for _, failed := range result.Failed {
		parts = append(parts, failed.Name+": "+failed.Failure)
	}
	if result.Overrun {
		parts = append(parts, "(overrun)")
	}
	if err != nil {
		parts = append(parts, err.Error())
	}
	return strings.Join(parts, "; ")
}

const good = "package x\ndeny contains \"no\" if input.object.metadata.name == \"a\"\n"

func test(name, object string, deny ...string) v1alpha1.PolicyTest {
	return v1alpha1.PolicyTest{Name: name, Deny: deny, Input: v1alpha1.PolicyTestInput{Object: &runtime.RawExtension{Raw: []byte(object)}}}
}

func TestResults(t *testing.T) {
	named := `{"kind":"VirtualMachine","metadata":{"name":"a"}}`
	anyFields := candidate("package x\ndeny contains \"no\" if input.object.spec.unknown\n")
	anyFields.AnyFields = true
	r := newRunner(t)
	for name, tc := range map[string]struct {
		candidate Candidate
		want      string
	}{
		"a good policy":           {candidate(good), ""},
		"a good one with a test":  {candidate(good, test("named", named, "no")), ""},
		"a test that fails":       {candidate(good, test("named", named)), `named: deny returns "no", which was not expected`},
		"one that is no Rego":     {candidate("package x\ndeny contains"), "parse: 2:13: unexpected eof token; parse: 2:13: unexpected eof token: expected rule key term (e.g., deny contains <VALUE> { ... })"},
		"a field that is unknown": {candidate("package x\ndeny contains \"no\" if input.object.spec.unknown\n"), `type: 2:41: unknown field: input.object.spec has no "unknown"`},
		"a field that is unknown, of objects with any fields": {anyFields, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := check(t, r, tc.candidate); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestTheLibraryPassesInAChild compares with the results without a child.
func TestTheLibraryPassesInAChild(t *testing.T) {
	all, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t)
	began := time.Now()
	for _, policy := range all {
		if got := check(t, r, Candidate{Name: policy.Name, Spec: &policy.Spec}); got != "" {
			t.Errorf("%s: %s", policy.Name, got)
		}
	}
	took := time.Since(began)
	first := pid(r)
	began = time.Now()
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range all {
		spec, _ := policyspec.Read(policy)
		compiled, err := compiler.Compile(t.Context(), spec.Definition)
		if err != nil {
			t.Fatal(err)
		}
		suite.Check(t.Context(), compiled, spec.Cases)
	}
	t.Logf("%d policies in %v in a child, in %v without one", len(all), took, time.Since(began))
	if again := check(t, r, Candidate{Name: all[0].Name, Spec: &all[0].Spec}); again != "" {
		t.Errorf("again: %s", again)
	}
	if first == 0 || pid(r) != first && pid(r) != 0 {
		t.Errorf("several children: %d and %d", first, pid(r))
	}
}

// TestHostilePolicies checks that a policy that only a process can bound is bounded, and that the next one is not concerned.
func TestHostilePolicies(t *testing.T) {
	r := newRunner(t, func(o *Options) {
		o.CompileTimeout = 2 * time.Second
		// A fast processor needs more than the default within that time, and memory would be the first limit.
		o.Memory = func() (int64, error) { return 8 << 30, nil }
	})
	for name, source := range hostile.Processes {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			got := check(t, r, candidate(source))
			if took := time.Since(began); took > time.Minute {
				t.Errorf("it took %v", took)
			}
			t.Log(time.Since(began), got)
			if next := check(t, r, candidate(good+"# after "+name)); next != "" {
				t.Errorf("the next policy: %s", next)
			}
		})
	}
	for _, tc := range []struct{ name, want string }{
		{"rules that need all others", "limit: it takes too long to compile: more than 2s; (overrun)"},
		{"a type doubled and compared", "limit: it takes too long to compile: more than 2s; (overrun)"},
	} {
		if got := check(t, r, candidate(hostile.Processes[tc.name])); got != tc.want && !strings.Contains(got, errStarved.Error()) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

//suite:plain
func TestTheEngineBoundsTheOthersInAChild(t *testing.T) {
	r := newRunner(t, func(o *Options) { o.CompileTimeout = time.Minute })
	named := `{"kind":"VirtualMachine","metadata":{"name":"a"}}`
	for name, source := range hostile.Policies {
		t.Run(name, func(t *testing.T) {
			result, err := r.Check(t.Context(), candidate(source, test("named", named)))
			if err != nil || result.Overrun {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
}

func TestMemoryIsLimited(t *testing.T) {
	r := newRunner(t, func(o *Options) {
		o.CompileTimeout = time.Minute
		o.Memory = func() (int64, error) { return 24 << 20, nil }
	})
	if got := check(t, r, candidate(good)); got != "" {
		t.Fatal(got)
	}
	// A child that has worked on another policy is not evidence: a second one confirms it.
	if got, want := check(t, r, candidate(hostile.Processes["rules that need many others"])), "limit: compiling it needs more than 24 MiB of memory; (overrun)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := check(t, r, candidate(good+"# later")); got != "" {
		t.Error(got)
	}
}

func TestTestsAreLimited(t *testing.T) {
	endless := "package x\ndeny contains \"no\" if {\n\tsome a in numbers.range(1, 10000)\n\tsome b in numbers.range(1, 10000)\n\ta + b == -1\n}\n"
	named := `{"kind":"VirtualMachine","metadata":{"name":"a"}}`
	r := newRunner(t, func(o *Options) { o.TestTimeout = time.Millisecond })
	if got, want := check(t, r, candidate(endless, test("first", named), test("second", named))), "first: the tests did not end within 1ms"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestResultsAreCached(t *testing.T) {
	r := newRunner(t)
	for _, source := range []string{good, "package x\ndeny contains"} {
		first := check(t, r, candidate(source))
		stopChild(r)
		if again := check(t, r, candidate(source)); again != first || pid(r) != 0 {
			t.Errorf("%q, then %q by child %d", first, again, pid(r))
		}
	}
	check(t, r, candidate(good+"#"))
	if pid(r) == 0 {
		t.Error("another source was not compiled")
	}
}

func TestAChildThatIsKilledWhileItWaitsIsReplaced(t *testing.T) {
	r := newRunner(t)
	check(t, r, candidate(good))
	if first := pid(r); first != 0 {
		if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if got := check(t, r, candidate(good+"# another")); got != "" {
		t.Error(got)
	}
}

func TestAChildEndsWhenItIsIdle(t *testing.T) {
	r := newRunner(t)
	check(t, r, candidate(good))
	fixture.Succeeds(t, func() error {
		if left := pid(r); left != 0 {
			return errors.New("a child runs: " + strconv.Itoa(left))
		}
		return nil
	})
}

func TestACallerThatDoesNotWaitEndsTheChild(t *testing.T) {
	r := newRunner(t, func(o *Options) { o.CompileTimeout = time.Hour })
	check(t, r, candidate(good))
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if result, err := r.Check(ctx, candidate(hostile.Processes["rules that need all others"])); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v, %v", result, err)
	}
	if left := pid(r); left != 0 {
		t.Errorf("child %d runs", left)
	}
}

func TestNoChildCanBeStarted(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no program":          {func(o *Options) { o.Program = []string{"/nowhere"} }, "the process that compiles policies is not available: fork/exec /nowhere: no such file or directory"},
		"a program that ends": {func(o *Options) { o.Program = []string{"/bin/sh", "-c", "echo no >&2; exit 3"} }, "the process that compiles policies is not available: exit status 3: no"},
		"no memory": {func(o *Options) {
			o.Memory = func() (int64, error) { return memoryFor(200<<20, 100<<20) }
		}, "the process that compiles policies is not available: too little memory is left: 100 MiB of the limit of 200 MiB are used, and compiling policies needs 144 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, tc.change)
			for range 2 { // The second time the first error is returned.
				_, err := r.Check(t.Context(), candidate(good))
				var unavailable *UnavailableError
				if !errors.As(err, &unavailable) || err.Error() != tc.want {
					t.Errorf("got %v, want %s", err, tc.want)
				}
			}
		})
	}
}

func TestMemoryFor(t *testing.T) {
	for name, tc := range map[string]struct{ limit, used, want int64 }{
		"the chart's limit":   {512 << 20, 132 << 20, 150 << 20},
		"a large limit":       {4 << 30, 1 << 30, 256 << 20},
		"hardly enough":       {244 << 20, 100 << 20, 32 << 20},
		"too little":          {243 << 20, 100 << 20, 0},
		"more used than left": {100 << 20, 200 << 20, 0},
	} {
		if got, err := memoryFor(tc.limit, tc.used); got != tc.want || (err == nil) != (tc.want > 0) {
			t.Errorf("%s: %d, %v, want %d", name, got, err, tc.want)
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	write := func(text string) []string {
		file := filepath.Join(t.TempDir(), "limit")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"/nowhere", file}
	}
	got := []int64{memoryLimit(write("536870912\n")), memoryLimit(write("max\n")), memoryLimit([]string{"/nowhere"})}
	if diff := cmp.Diff([]int64{512 << 20, math.MaxInt64, math.MaxInt64}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAChildHasNothingOfItsParent(t *testing.T) {
	t.Setenv("SECRET", "value")
	r := newRunner(t)
	check(t, r, candidate(good))
	child := "/proc/" + strconv.Itoa(pid(r))
	environment, err := os.ReadFile(child + "/environ")
	if err != nil || string(environment) != "GOMAXPROCS=1\x00GOTRACEBACK=single\x00" {
		t.Errorf("environment %q, %v", environment, err)
	}
	limits, err := os.ReadFile(child + "/limits")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(limits), "\n") {
		if strings.HasPrefix(line, "Max data size") && strings.Contains(line, "unlimited") || strings.HasPrefix(line, "Max file size") && strings.Fields(line)[3] != "0" {
			t.Error(line)
		}
	}
	if score, err := os.ReadFile(child + "/oom_score_adj"); err != nil || string(score) != "1000\n" {
		t.Errorf("oom_score_adj %q, %v", score, err)
	}
}
