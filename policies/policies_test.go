package policies_test

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/charts"
)

// all reads every policy, by the name of its file without the suffix.
func all(t *testing.T) map[string]admissionregistrationv1.ValidatingAdmissionPolicy {
	t.Helper()
	files, err := fs.Glob(charts.Files, path.Join(charts.Policies, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are %d policies: %v", len(files), err)
	}
	found := map[string]admissionregistrationv1.ValidatingAdmissionPolicy{}
	for _, file := range files {
		content, err := charts.Files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var policy admissionregistrationv1.ValidatingAdmissionPolicy
		if err := yaml.UnmarshalStrict(content, &policy); err != nil {
			t.Fatalf("%s: one policy a file, without unknown fields: %v", file, err)
		}
		found[strings.TrimSuffix(path.Base(file), ".yaml")] = policy
	}
	return found
}

// The properties that every policy must have (see the package's documentation). The behaviour of each policy is tested on an API server,
// in test/e2e/policies and test/chart.
func TestEveryPolicyKeepsThePromisesOfThePackage(t *testing.T) {
	for name, policy := range all(t) {
		t.Run(name, func(t *testing.T) {
			if policy.APIVersion != "admissionregistration.k8s.io/v1" || policy.Kind != "ValidatingAdmissionPolicy" {
				t.Errorf("it is a %s %s", policy.APIVersion, policy.Kind)
			}
			if policy.Name != name {
				t.Errorf("it is called %s", policy.Name)
			}
			if len(policy.Labels) > 0 || len(policy.Annotations) > 0 {
				t.Error("labels and annotations belong to whoever installs it")
			}
			if policy.Spec.FailurePolicy == nil || *policy.Spec.FailurePolicy != admissionregistrationv1.Fail {
				t.Error("it does not fail closed")
			}
			match := policy.Spec.MatchConstraints
			if match == nil || match.MatchPolicy == nil || *match.MatchPolicy != admissionregistrationv1.Equivalent {
				t.Fatal("it can be passed by through another version of the API")
			}
			// Policies for template.kubevirt.io match all objects of the group, so they need no condition.
			own := func(rule admissionregistrationv1.NamedRuleWithOperations) bool {
				return slices.Equal(rule.APIGroups, []string{"template.kubevirt.io"})
			}
			if len(policy.Spec.MatchConditions) == 0 && !slices.ContainsFunc(match.ResourceRules, own) {
				t.Error("it judges objects that are none of its business")
			}
			for _, validation := range policy.Spec.Validations {
				if validation.Message == "" {
					t.Errorf("%s: without a static message, a message that cannot be built says nothing", validation.Expression)
				}
				if strings.Contains(validation.Message, "\n") {
					t.Errorf("%s: the message has several lines", validation.Expression)
				}
				if validation.Reason == nil {
					t.Errorf("%s: no reason", validation.Expression)
				}
			}
		})
	}
}
