package library

import (
	"context"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/charts"
	policyspec "github.com/vmstencil/stencil/policies/spec"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
)

func policies(t testing.TB) []*v1alpha1.VirtualMachinePolicy {
	t.Helper()
	all, err := Policies()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEveryPolicyCompilesAndPassesItsTests compiles each policy as the manager does,
// type-checked against KubeVirt's schema, and runs its tests. The tests cover every
// row.
func TestEveryPolicyCompilesAndPassesItsTests(t *testing.T) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range policies(t) {
		t.Run(policy.Name, func(t *testing.T) {
			spec, problems := policyspec.Read(policy)
			if len(problems) > 0 {
				t.Fatal(problems.ToAggregate())
			}
			report, err := suite.Run(context.Background(), compiler, spec.Definition, suite.Suite{Cases: spec.Cases})
			if err != nil {
				t.Fatal(err)
			}
			for _, failed := range report.Failed() {
				t.Errorf("%s: %s", failed.Name, failed.Failure)
			}
			rows := strings.Split(spec.Definition.Source, "\n")
			for _, row := range report.Coverage.NotCovered {
				t.Errorf("row %d is reached by no test: %s", row, rows[row-1])
			}
		})
	}
}

// TestEveryPolicyIsCompleteAsAnExample checks properties that readers of the files rely
// on.
func TestEveryPolicyIsCompleteAsAnExample(t *testing.T) {
	for _, policy := range policies(t) {
		t.Run(policy.Name, func(t *testing.T) {
			if _, err := charts.Files.ReadFile(path.Join(charts.Library, policy.Name+".yaml")); err != nil {
				t.Errorf("the file has another name than the policy: %v", err)
			}
			if policy.APIVersion != v1alpha1.GroupVersion.String() || policy.Kind != "VirtualMachinePolicy" {
				t.Errorf("it is %s %s", policy.APIVersion, policy.Kind)
			}
			about := describe(t, policy)
			if about.title == "" || about.description == "" || !slices.Contains([]string{"low", "medium", "high", "critical"}, about.severity) {
				t.Errorf("METADATA lacks title, description or severity: %+v", about)
			}
			for _, parameter := range about.parameters {
				if parameter.description == "" || parameter.fallback == "" {
					t.Errorf("parameter %s lacks a description or a default", parameter.name)
				}
			}
			rejected, passed := 0, 0
			for _, test := range policy.Spec.Tests {
				if test.Parameters == nil {
					t.Errorf("test %q depends on the parameters of whoever uses the policy", test.Name)
				}
				if len(test.Deny)+len(test.Warn) > 0 {
					rejected++
				} else {
					passed++
				}
			}
			if rejected == 0 || passed == 0 {
				t.Errorf("%d tests find something and %d find nothing", rejected, passed)
			}
		})
	}
}

// TestTheParametersAreTheDefaultsOfTheirSchema checks that the parameters of a policy
// equal the defaults of its schema.
func TestTheParametersAreTheDefaultsOfTheirSchema(t *testing.T) {
	for _, policy := range policies(t) {
		about := describe(t, policy)
		given := map[string]any{}
		decode(t, policy.Spec.Parameters.Raw, &given)
		for _, parameter := range about.parameters {
			if got := encode(t, given[parameter.name]); got != parameter.fallback {
				t.Errorf("%s: parameter %s is %s, and %s by default", policy.Name, parameter.name, got, parameter.fallback)
			}
			delete(given, parameter.name)
		}
		for name := range given {
			t.Errorf("%s: parameter %s is not in the schema", policy.Name, name)
		}
	}
}
