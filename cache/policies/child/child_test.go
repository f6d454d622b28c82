package child

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
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

func embedded(t testing.TB) *schema.Schemas {
	t.Helper()
	schemas, err := schema.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	return schemas
}

func runner(t testing.TB, change ...func(*Options)) *Runner {
	t.Helper()
	schemas := embedded(t)
	o := Options{Program: []string{os.Args[0], Argument}, Schemas: func() *schema.Schemas { return schemas }, Logger: testr.New(t.(*testing.T))}
	for _, each := range change {
		each(&o)
	}
	r := New(o)
	t.Cleanup(func() {
		r.turn <- struct{}{}
		r.stop()
	})
	return r
}

func TestMeasure(t *testing.T) {
	r := runner(t)
	all, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		began := time.Now()
		for _, policy := range all {
			result, err := r.Check(t.Context(), Candidate{Name: policy.Name, Spec: &policy.Spec})
			if err != nil || len(result.Problems)+len(result.Failed) > 0 {
				t.Errorf("%s: %+v, %v", policy.Name, result, err)
			}
		}
		t.Logf("%d policies in %v", len(all), time.Since(began))
		if p := r.child; p != nil {
			b, _ := os.ReadFile("/proc/" + itoa(p.command.Process.Pid) + "/status")
			t.Logf("cpu %v memory %d\n%s", p.cpu, p.memory, b)
		}
	}
	began := time.Now()
	compiler, err := rego.NewCompiler()
	t.Logf("compiler in %v", time.Since(began))
	began = time.Now()
	for _, policy := range all {
		spec, _ := policyspec.Read(policy)
		compiled, err := compiler.Compile(t.Context(), spec.Definition)
		if err != nil {
			t.Fatal(err)
		}
		suite.Check(t.Context(), compiled, spec.Cases)
	}
	t.Logf("directly %d policies in %v", len(all), time.Since(began))
	began = time.Now()
	for i := range 500 {
		spec := all[i%len(all)].DeepCopy()
		spec.Name += itoa(i)
		spec.Spec.Rego += "# " + itoa(i) + "\n"
		result, err := r.Check(t.Context(), Candidate{Name: spec.Name, Spec: &spec.Spec})
		if err != nil || len(result.Problems)+len(result.Failed) > 0 {
			t.Errorf("%s: %+v, %v", spec.Name, result, err)
		}
	}
	t.Logf("500 policies in %v", time.Since(began))
	if p := r.child; p != nil {
		b, _ := os.ReadFile("/proc/" + itoa(p.command.Process.Pid) + "/status")
		t.Logf("cpu %v memory %d\n%s", p.cpu, p.memory, b)
	}
	_ = v1alpha1.GroupVersion
}
func itoa(i int) string { return strconv.Itoa(i) }
