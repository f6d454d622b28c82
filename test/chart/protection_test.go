package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// registrations are the kinds of which the manager restores every object of the release.
var registrations = []string{
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
}

// protected reads the manifests of the ConfigMap from which the manager restores objects.
func protected(t *testing.T, rendered objects, prefix string) objects {
	t.Helper()
	found := objects{}
	manifests, _ := rendered.field(t, "ConfigMap/"+prefix+"-protected-objects", "{.data}").(map[string]any)
	for key, text := range manifests {
		one := decode(t, text.(string))
		if len(one) != 1 {
			t.Fatalf("%s has %d objects", key, len(one))
		}
		for name, object := range one {
			if want := object.GetKind() + "." + object.GetName() + ".yaml"; key != want {
				t.Errorf("%s is kept as %s", name, key)
			}
			found[name] = object
		}
	}
	return found
}

// Policies with a parameter read the index of approvals, which does not exist at a first installation. The manager creates their bindings after it
// has written the index.
func TestBindingsOfPoliciesThatReadTheIndexAreLeftToTheManager(t *testing.T) {
	for _, tc := range []struct{ name, release, prefix, values string }{
		{name: "a default installation", release: "stencil", prefix: "stencil"},
		{name: "another name, and everything", release: "templates", prefix: "templates-stencil", values: `{defaulting: {enabled: true}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rendered := render(t, tc.release, tc.values)
			bindings := protected(t, rendered, tc.prefix)
			var installed, byManager []string
			for key, object := range rendered {
				if slices.Contains(registrations, object.GetKind()) {
					installed = append(installed, key)
				}
				if object.GetKind() == "ValidatingAdmissionPolicy" && rendered.field(t, key, "{.spec.paramKind}") != nil {
					byManager = append(byManager, strings.Replace(key, "Policy/", "PolicyBinding/", 1))
				}
			}
			slices.Sort(byManager)
			want := []string{"ValidatingAdmissionPolicyBinding/" + tc.prefix + "-namespace-coverage", "ValidatingAdmissionPolicyBinding/" + tc.prefix + "-undecided-namespaces"}
			if diff := gocmp.Diff(want, byManager); diff != "" {
				t.Errorf("bindings of policies with a parameter (-want +got):\n%s", diff)
			}
			for _, key := range byManager {
				if _, found := rendered[key]; found {
					t.Errorf("%s is in the release", key)
				}
			}
			all := slices.Concat(installed, byManager)
			slices.Sort(all)
			if diff := gocmp.Diff(all, slices.Sorted(maps.Keys(bindings))); diff != "" {
				t.Errorf("objects that the manager keeps (-want +got):\n%s", diff)
			}
			for _, key := range byManager {
				name := bindings[key].GetName()
				missing := "Deny"
				if strings.HasSuffix(name, "-namespace-coverage") {
					missing = "Allow"
				}
				want := map[string]any{
					"policyName": name, "validationActions": []any{"Deny"},
					"paramRef": map[string]any{"name": "stencil-approval-index", "namespace": "stencil-system", "parameterNotFoundAction": missing},
				}
				if diff := gocmp.Diff(want, plain(t, bindings.field(t, key, "{.spec}"))); diff != "" {
					t.Errorf("%s (-want +got):\n%s", key, diff)
				}
			}
			for key, object := range bindings {
				requires := ""
				if object.GetAnnotations()["stencil.kubevirt.io/authority-of"] != "" {
					// The manager adds the webhooks.
					if webhooks, _ := object.Object["webhooks"].([]any); len(webhooks) == 0 {
						t.Errorf("%s of the manager has no webhooks", key)
					}
					delete(object.Object, "webhooks")
				}
				if slices.Contains(byManager, key) {
					requires = "stencil-approval-index"
				} else if diff := gocmp.Diff(rendered[key].Object, object.Object); diff != "" {
					t.Errorf("%s of the release and of the manager differ (-release +manager):\n%s", key, diff)
				}
				if got := object.GetAnnotations()["stencil.kubevirt.io/requires-configmap"]; got != requires {
					t.Errorf("%s requires ConfigMap %q, want %q", key, got, requires)
				}
			}
		})
	}
}
