package library

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/testfile"
	policyspec "github.com/vmstencil/stencil/policies/spec"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
)

func TestThePageOfTheBuiltInFunctions(t *testing.T) {
	groups := map[string][]string{}
	var order []string
	for _, name := range rego.Builtins() {
		group, _, dotted := strings.Cut(name, ".")
		if !dotted {
			group = ""
		}
		if groups[group] == nil {
			order = append(order, group)
		}
		groups[group] = append(groups[group], "`"+name+"`")
	}
	var text strings.Builder
	text.WriteString("\n")
	for _, group := range order {
		fmt.Fprintf(&text, "- %s\n", strings.Join(groups[group], ", "))
	}
	text.WriteString("\n")
	path := "../../docs/policies/builtins.md"
	generated(path, "<!-- builtins:begin -->\n", "<!-- builtins:end -->").Compare(t, text.String())
}

// TestTheTranslationOfAConstraintTemplate runs the policy of docs/policies/gatekeeper.md.
func TestTheTranslationOfAConstraintTemplate(t *testing.T) {
	content := testfile.Read(t, "../../docs/policies/gatekeeper.md")
	_, after, _ := strings.Cut(string(content), "<!-- translation:begin -->\n```yaml\n")
	manifest, _, found := strings.Cut(after, "```\n<!-- translation:end -->")
	if !found {
		t.Fatal("the page has no translation")
	}
	passes(t, manifest)
}

// TestTheExamplesPassTheirTests runs the tests of docs/examples, except for the example
// that must be rejected.
func TestTheExamplesPassTheirTests(t *testing.T) {
	for _, example := range []string{"policies/owners.yaml", "policies/registries.yaml", "transfers/packages.yaml"} {
		manifests := strings.Split(string(testfile.Read(t, "../../docs/examples/"+example)), "\n---\n")
		passes(t, manifests[len(manifests)-1])
	}
}

func passes(t *testing.T, manifest string) {
	t.Helper()
	policy := &v1alpha1.VirtualMachinePolicy{}
	if err := yaml.UnmarshalStrict([]byte(manifest), policy); err != nil {
		t.Fatal(err)
	}
	spec, problems := policyspec.Read(policy)
	if len(problems) > 0 {
		t.Fatal(problems.ToAggregate())
	}
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	report, err := suite.Run(context.Background(), compiler, spec.Definition, suite.Suite{Cases: spec.Cases})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Results) == 0 {
		t.Error("it has no tests")
	}
	for _, failed := range report.Failed() {
		t.Errorf("%s: %s", failed.Name, failed.Failure)
	}
}
