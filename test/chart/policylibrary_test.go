package chart

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/policies/library"
)

// switchedOn returns the policies in the ConfigMap of the library, by name.
func switchedOn(t *testing.T, values string) map[string]map[string]any {
	t.Helper()
	configMap := render(t, "stencil", values)["ConfigMap/stencil-policy-library"]
	if configMap == nil {
		t.Fatal("there is no ConfigMap")
	}
	data, _, err := unstructured.NestedStringMap(configMap.Object, "data")
	if err != nil {
		t.Fatal(err)
	}
	policies := map[string]map[string]any{}
	for _, text := range data {
		policy := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &policy); err != nil {
			t.Fatal(err)
		}
		name, _, _ := unstructured.NestedString(policy, "metadata", "name")
		policies[name] = policy
	}
	return policies
}

func TestNoPolicyOfTheLibraryIsSwitchedOnByDefault(t *testing.T) {
	if got := switchedOn(t, "{}"); len(got) != 0 {
		t.Errorf("%d are", len(got))
	}
}

func TestWhatTheValuesLeaveOpenIsThePolicysOwn(t *testing.T) {
	got := switchedOn(t, `
policies:
  library:
    size-limits: {enabled: true}
    owner-label:
      enabled: true
      enforcement: Audit
      failureMode: Allow
      timeoutMilliseconds: 250
      parameters: {label: team, users: true}
      match: {operations: [CREATE], namespaceSelector: {matchLabels: {tier: gold}}}
`)
	all, err := library.Policies()
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range all {
		found := got[policy.Name]
		if found == nil {
			continue
		}
		raw, err := json.Marshal(policy.Spec)
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if policy.Name == "owner-label" {
			want["enforcement"], want["failureMode"], want["timeoutMilliseconds"] = "Audit", "Allow", 250.0
			parameters := want["parameters"].(map[string]any)
			parameters["label"], parameters["users"] = "team", true
			match := want["match"].(map[string]any)
			match["operations"], match["namespaceSelector"] = []any{"CREATE"}, map[string]any{"matchLabels": map[string]any{"tier": "gold"}}
		}
		spec, err := json.Marshal(found["spec"])
		if err != nil {
			t.Fatal(err)
		}
		var have map[string]any
		if err := json.Unmarshal(spec, &have); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s (-policy with values +rendered):\n%s", policy.Name, diff)
		}
	}
	if len(got) != 2 {
		t.Errorf("%d policies are switched on", len(got))
	}
}
