package policies

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

// The other tests use a fake engine. This one verifies that the real engine works with the builder.
func TestTheEngineBuildsPolicies(t *testing.T) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	b := newBuilder(compiler, nil, time.Minute, logr.Discard())
	const module = `package x
deny contains sprintf("at most %d", [data.parameters.maximum]) if input.object.spec.template.spec.domain.cpu.cores > data.parameters.maximum`
	object := func(source, parameters string, tests ...v1alpha1.PolicyTest) *v1alpha1.VirtualMachinePolicy {
		policy := vmpol("a", source, 1)
		policy.Spec.Parameters = &runtime.RawExtension{Raw: []byte(parameters)}
		policy.Spec.ParametersSchema = &runtime.RawExtension{Raw: []byte(`{"type":"object","properties":{"maximum":{"type":"integer"}}}`)}
		policy.Spec.Tests = tests
		return policy
	}
	test := func(parameters string, deny ...string) v1alpha1.PolicyTest {
		one := v1alpha1.PolicyTest{Name: "eight", Deny: deny, Input: v1alpha1.PolicyTestInput{
			Object: &runtime.RawExtension{Raw: []byte(`{"kind":"VirtualMachine","spec":{"template":{"spec":{"domain":{"cpu":{"cores":8}}}}}}`)},
		}}
		if parameters != "" {
			one.Parameters = &runtime.RawExtension{Raw: []byte(parameters)}
		}
		return one
	}
	cases := map[string]struct {
		object *v1alpha1.VirtualMachinePolicy
		// problem and failure are parts of the expected messages; if both are empty, no problem is expected.
		problem, failure string
	}{
		"a good policy":                              {object: object(module, `{"maximum":4}`, test("", "at most 4"))},
		"a test with parameters of its own":          {object: object(module, `{"maximum":4}`, test(`{"maximum":16}`))},
		"a test that expects something else":         {object: object(module, `{"maximum":4}`, test("", "at most 5")), failure: "at most 4"},
		"a module that does not compile":             {object: object("package x\ndeny contains \"a\" if input.objekt", `{}`), problem: "2:"},
		"parameters that violate their schema":       {object: object(module, `{"maximum":"four"}`), problem: "parameters.maximum"},
		"a test whose parameters violate the schema": {object: object(module, `{"maximum":4}`, test(`{"maximum":"four"}`)), failure: "parameters.maximum"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			built := b.build(t.Context(), tc.object, nil)
			problem, failure := "", ""
			if len(built.problems) > 0 {
				problem = built.problems[0].String()
			}
			if len(built.failed) > 0 {
				failure = built.failed[0].Failure
			}
			if !strings.Contains(problem, tc.problem) || tc.problem == "" && problem != "" {
				t.Errorf("problem %q, want %q", problem, tc.problem)
			}
			if !strings.Contains(failure, tc.failure) || tc.failure == "" && failure != "" {
				t.Errorf("failure %q, want %q", failure, tc.failure)
			}
			if good := tc.problem+tc.failure == ""; good != (built.good != nil) {
				t.Errorf("good: %v", built.good)
			}
		})
	}
}

func TestABrokenPolicyFailsWhenItIsEvaluated(t *testing.T) {
	object := vmpol("a", "broken", 1)
	c, _ := started(t, &engine{}, time.Minute, object)
	synced(t, c)
	in, err := rego.NewInput(rego.Document{})
	if err != nil {
		t.Fatal(err)
	}
	matching := c.Set().Matching(policyset.Query{Operation: "CREATE", Kind: "VirtualMachine"})
	decision := c.Evaluator().Evaluate(t.Context(), matching, in)
	if len(decision.Denials) != 1 || decision.Denials[0].Policy != "a" || decision.Denials[0].Message != "could not be evaluated: it is broken: it does not compile" {
		t.Errorf("got %+v", decision.Denials)
	}
}
