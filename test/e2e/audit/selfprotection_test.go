package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// seconds bounds a restoration: an object has to be missing for two seconds first, and the host is slow.
const seconds = 20 * time.Second

// guarded starts a plane of its own, because the tests of self-protection change objects that every other test relies on.
func guarded(t *testing.T, policies string) *controlplane.Plane {
	t.Helper()
	// The controller manager runs the garbage collector.
	plane := controlplane.StartFor(t, controlplane.Options{VirtualizationCRDs: true, ControllerManager: true})
	if err := install.Chart(t.Context(), plane, protecting(policies)); err != nil {
		t.Fatal(err)
	}
	return plane
}

// protecting returns values for what happens to policies that are changed.
func protecting(policies string) install.Options {
	return install.Options{Values: map[string]any{"selfProtection": map[string]any{"policies": policies}}}
}

// essence returns what self-protection restores of an object: its effective content, and its labels.
func essence(t *testing.T, plane *controlplane.Plane, object string) (string, error) {
	t.Helper()
	raw, err := lookup(t, plane, "get", object, "-o", "json")
	if err != nil {
		return "", err
	}
	var decoded struct {
		Metadata struct{ Labels, Annotations map[string]string }
		Spec     map[string]any
		Webhooks []map[string]any
	}
	if err := json.Unmarshal([]byte(raw), &decoded); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(decoded, "", "  ")
	return string(text), err
}

// owners returns which field manager owns which part of an object.
func owners(t *testing.T, plane *controlplane.Plane, object string) string {
	t.Helper()
	out, err := lookup(t, plane, "get", object, "--show-managed-fields", "-o",
		`jsonpath={range .metadata.managedFields[*]}{.manager}/{.operation} {end}`)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	render  = "mutatingwebhookconfiguration/a-stencil-render"
	decide  = "validatingwebhookconfiguration/stencil-validate"
	policy  = "validatingadmissionpolicy/stencil-template-reference"
	binding = "validatingadmissionpolicybinding/stencil-template-reference"
)

func TestSelfProtection(t *testing.T) {
	plane := guarded(t, "Restore")
	leader := newLeader(t, plane)
	leader.addProtection(t)
	leader.run(t)
	original := map[string]string{}
	for _, object := range []string{render, decide, policy, binding} {
		text, err := essence(t, plane, object)
		if err != nil {
			t.Fatal(err)
		}
		original[object] = text
	}
	restored := func(t *testing.T, object string) {
		t.Helper()
		harness.Within(t, object+" is restored", seconds, func() error {
			text, err := essence(t, plane, object)
			if err != nil {
				return err
			}
			if diff := cmp.Diff(original[object], text); diff != "" {
				return fmt.Errorf("%s is not restored (-want +got):\n%s", object, diff)
			}
			return nil
		})
	}
	count := func(kind, name string) float64 {
		return max(0, leader.metric(t, "stencil_restored_objects_total", map[string]string{"kind": kind, "name": name}))
	}
	if got := count("MutatingWebhookConfiguration", "a-stencil-render"); got != 0 {
		t.Errorf("%v restorations although nobody has changed anything", got)
	}
	t.Run("every registration of the release is protected", func(t *testing.T) {
		installed, err := lookup(t, plane, "get", "mutatingwebhookconfiguration,validatingwebhookconfiguration,validatingadmissionpolicy,validatingadmissionpolicybinding",
			"--selector", "app.kubernetes.io/part-of=stencil", "-o", `jsonpath={range .items[*]}{.kind}.{.metadata.name}.yaml{"\n"}{end}`)
		if err != nil {
			t.Fatal(err)
		}
		protected, err := lookup(t, plane, "get", "configmap", "stencil-protected-objects", "--namespace", install.Namespace,
			"-o", `go-template={{range $key, $_ := .data}}{{$key}}{{"\n"}}{{end}}`)
		if err != nil {
			t.Fatal(err)
		}
		sorted := func(text string) []string { return slices.Sorted(strings.Lines(text + "\n")) }
		// Bindings that require the index of approvals are created when it exists.
		const held = "\nValidatingAdmissionPolicyBinding.stencil-namespace-coverage.yaml\nValidatingAdmissionPolicyBinding.stencil-undecided-namespaces.yaml"
		if diff := cmp.Diff(sorted(installed+held), sorted(protected)); diff != "" {
			t.Errorf("installed and protected (-want +got):\n%s", diff)
		}
		harness.Within(t, "the metric counts the protected objects", seconds, func() error {
			if got, want := leader.metric(t, "stencil_protected_objects", nil), len(sorted(protected)); int(got) != want {
				return fmt.Errorf("the metric counts %v protected objects of %d", got, want)
			}
			return nil
		})
	})
	t.Run("a binding that requires the index is created with it", func(t *testing.T) {
		kubectl(t, plane, "", "create", "configmap", "stencil-approval-index", "--namespace", install.Namespace)
		harness.Within(t, "the bindings are there", seconds, func() error {
			_, err := lookup(t, plane, "get", "validatingadmissionpolicybindings", "stencil-namespace-coverage", "stencil-undecided-namespaces")
			return err
		})
	})
	// counting returns a check that an object has been restored once since, with Helm as the field manager.
	counting := func(object, kind string) func(*testing.T) {
		_, name, _ := strings.Cut(object, "/")
		before := count(kind, name)
		return func(t *testing.T) {
			t.Helper()
			harness.Within(t, "the restoration is counted", seconds, func() error {
				if got := count(kind, name); got != before+1 {
					return fmt.Errorf("the metric counts %v restorations, %v before", got, before)
				}
				// Helm would reject an upgrade of fields with another owner.
				if by := owners(t, plane, object); strings.Contains(by, "stencil-self-protection") || !strings.Contains(by, "helm/Apply") {
					return fmt.Errorf("fields of %s are owned by %s", object, by)
				}
				return nil
			})
		}
	}
	for _, tc := range []struct {
		name, object, kind string
		attack             []string
	}{
		{"a webhook that is told to fail open", render, "MutatingWebhookConfiguration",
			[]string{"patch", render, "--type=json", `-p=[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`}},
		{"a webhook that is made to look away", decide, "ValidatingWebhookConfiguration",
			[]string{"patch", decide, "--type=json", `-p=[{"op":"add","path":"/webhooks/0/objectSelector","value":{"matchLabels":{"never":"true"}}}]`}},
		{"a webhook that is pointed elsewhere, which cannot be merged back", decide, "ValidatingWebhookConfiguration",
			[]string{"patch", decide, "--type=json", `-p=[{"op":"replace","path":"/webhooks/0/clientConfig","value":{"url":"https://localhost:1/x"}}]`}},
		{"a condition that is never met", render, "MutatingWebhookConfiguration",
			[]string{"patch", render, "--type=json", `-p=[{"op":"add","path":"/webhooks/0/matchConditions/-","value":{"name":"never","expression":"false"}}]`}},
		{"webhooks that are taken away", render, "MutatingWebhookConfiguration",
			[]string{"patch", render, "--type=json", `-p=[{"op":"remove","path":"/webhooks"}]`}},
		{"a policy that is told to fail open", policy, "ValidatingAdmissionPolicy",
			[]string{"patch", policy, "--type=merge", `-p={"spec":{"failurePolicy":"Ignore"}}`}},
		{"a policy that excludes what it is for", policy, "ValidatingAdmissionPolicy",
			[]string{"patch", policy, "--type=merge", `-p={"spec":{"matchConstraints":{"excludeResourceRules":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*"]}]}}}`}},
		{"a binding that only warns", binding, "ValidatingAdmissionPolicyBinding",
			[]string{"patch", binding, "--type=merge", `-p={"spec":{"validationActions":["Warn"]}}`}},
		{"a binding that is limited to some namespaces", binding, "ValidatingAdmissionPolicyBinding",
			[]string{"patch", binding, "--type=merge", `-p={"spec":{"matchResources":{"namespaceSelector":{"matchLabels":{"never":"true"}}}}}`}},
		{"the label by which it is watched", binding, "ValidatingAdmissionPolicyBinding",
			[]string{"label", binding, "app.kubernetes.io/part-of-", "app.kubernetes.io/managed-by=me", "--overwrite"}},
	} {
		t.Run(tc.name+" is restored", func(t *testing.T) {
			counted := counting(tc.object, tc.kind)
			kubectl(t, plane, "", tc.attack...)
			restored(t, tc.object)
			counted(t)
		})
	}
	t.Run("everything that was deleted at once is restored", func(t *testing.T) {
		var counted []func(*testing.T)
		for object, kind := range map[string]string{
			render: "MutatingWebhookConfiguration", decide: "ValidatingWebhookConfiguration",
			policy: "ValidatingAdmissionPolicy", binding: "ValidatingAdmissionPolicyBinding",
		} {
			counted = append(counted, counting(object, kind))
		}
		kubectl(t, plane, "", "delete", render, decide, policy, binding)
		for object := range original {
			restored(t, object)
		}
		for _, each := range counted {
			each(t)
		}
	})
	t.Run("what others may write is left alone", func(t *testing.T) {
		kubectl(t, plane, "", "patch", render, "--type=json", `-p=[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"QUJD"}]`)
		kubectl(t, plane, "", "label", policy, "audited=yes")
		kubectl(t, plane, "", "annotate", policy, "ticket=1")
		always(t, 2*time.Second, func() error {
			bundle, err := lookup(t, plane, "get", render, "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}")
			marks, failed := lookup(t, plane, "get", policy, "-o", "jsonpath={.metadata.labels.audited}{.metadata.annotations.ticket}")
			if bundle != "QUJD" || marks != "yes1" {
				return fmt.Errorf("caBundle %q, marks %q (%w)", bundle, marks, errors.Join(err, failed))
			}
			return nil
		})
	})
	t.Run("a caBundle survives that something else is restored", func(t *testing.T) {
		kubectl(t, plane, "", "patch", render, "--type=json", `-p=[{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":1}]`)
		harness.Within(t, "the webhook is restored with its caBundle", seconds, func() error {
			got, err := lookup(t, plane, "get", render, "-o", "jsonpath={.webhooks[0].clientConfig.caBundle} {.webhooks[0].timeoutSeconds}")
			if got != "QUJD 10" {
				return fmt.Errorf("got %q, %w", got, err)
			}
			return nil
		})
	})
	t.Run("whoever did it is named in an event", func(t *testing.T) {
		kubectl(t, plane, "", "patch", policy, "--field-manager=mallory", "--type=merge", `-p={"spec":{"failurePolicy":"Ignore"}}`)
		harness.Within(t, "an event names who did it", seconds, func() error {
			const want = `ValidatingAdmissionPolicy/stencil-template-reference was restored: spec.failurePolicy had been changed, last by field manager "mallory"`
			got, err := lookup(t, plane, "get", "events", "--namespace", install.Namespace, "-o", `jsonpath={range .items[?(@.reason=="Restored")]}{.type} {.involvedObject.name}: {.message}{"\n"}{end}`)
			if !strings.Contains(got, "Warning stencil-protected-objects: "+want) {
				return fmt.Errorf("the events are %w:\n%s", err, got)
			}
			return nil
		})
	})
	t.Run("an upgrade changes what it wants to, also what was restored before, and is not fought", func(t *testing.T) {
		restorations := func() float64 { return count("MutatingWebhookConfiguration", "a-stencil-render") }
		before := restorations()
		upgraded := protecting("Restore")
		upgraded.Values["webhooks"] = map[string]any{"timeoutSeconds": 7}
		if err := install.Chart(t.Context(), plane, upgraded); err != nil {
			t.Fatal(err)
		}
		// A changed object is restored within a second, a deleted one after two.
		always(t, 5*time.Second, func() error {
			got, err := lookup(t, plane, "get", render, "-o", "jsonpath={.webhooks[0].timeoutSeconds}")
			if got != "7" {
				return fmt.Errorf("timeout %q, %w", got, err)
			}
			return nil
		})
		if got := restorations(); got != before {
			t.Errorf("%v restorations during the upgrade", got-before)
		}
		kubectl(t, plane, "", "patch", render, "--type=json", `-p=[{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":1}]`)
		harness.Within(t, "the webhook has the timeout of the upgrade", seconds, func() error {
			got, err := lookup(t, plane, "get", render, "-o", "jsonpath={.webhooks[0].timeoutSeconds}")
			if got != "7" {
				return fmt.Errorf("timeout %q, %w", got, err)
			}
			return nil
		})
	})
	t.Run("when the release is uninstalled everything goes and stays away", func(t *testing.T) {
		// As if a restoration had happened at the worst moment.
		kubectl(t, plane, "", "delete", render, policy)
		harness.Within(t, "what was deleted is restored", seconds, func() error {
			_, err := lookup(t, plane, "get", render, policy)
			return err
		})
		if err := install.Uninstall(context.WithoutCancel(t.Context()), plane, install.Options{}); err != nil {
			t.Fatal(err)
		}
		missing := func() error {
			left, err := lookup(t, plane, "get", "mutatingwebhookconfiguration,validatingwebhookconfiguration,validatingadmissionpolicy,validatingadmissionpolicybinding",
				"--selector", "app.kubernetes.io/part-of=stencil", "-o", "name")
			if left != "" {
				return fmt.Errorf("left behind: %s", left)
			}
			return err
		}
		// On a slow host the garbage collector takes part of the time.
		harness.Within(t, "nothing is left", time.Minute, missing)
		always(t, 4*time.Second, missing)
	})
	t.Run("what was restored goes with the release", func(t *testing.T) {
		if err := install.Chart(t.Context(), plane, protecting("Restore")); err != nil {
			t.Fatal(err)
		}
		harness.Within(t, "everything is protected again", seconds, func() error {
			if leader.metric(t, "stencil_protected_objects", nil) == 0 {
				return errors.New("nothing is protected yet")
			}
			return nil
		})
		restoredGoesWithTheRelease(t, plane)
	})
}

// By default the manager has no permission to write policies and bindings, and reports their changes.
func TestChangesOfPoliciesAreReported(t *testing.T) {
	plane := guarded(t, "Report")
	leader := newLeader(t, plane)
	leader.addProtection(t)
	leader.run(t)
	events := func(t *testing.T, want string) {
		t.Helper()
		harness.Within(t, "an event reports it", seconds, func() error {
			got, err := lookup(t, plane, "get", "events", "--namespace", install.Namespace, "-o", `jsonpath={range .items[?(@.reason=="Changed")]}{.type} {.involvedObject.name}: {.message}{"\n"}{end}`)
			if !strings.Contains(got+"\n", "Warning stencil-protected-objects: "+want+"; install the chart again\n") {
				return fmt.Errorf("the events are %w:\n%s", err, got)
			}
			return nil
		})
	}
	gauge := func(t *testing.T, object string, want float64) {
		t.Helper()
		kind, name, _ := strings.Cut(object, "/")
		harness.Within(t, "the metric reports it", seconds, func() error {
			if got := max(0, leader.metric(t, "stencil_changed_objects", map[string]string{"kind": kind, "name": name})); got != want {
				return fmt.Errorf("the metric is %v", got)
			}
			return nil
		})
	}
	harness.Within(t, "everything is as the release has it", seconds, func() error {
		if leader.metric(t, "stencil_protected_objects", nil) < 40 {
			return errors.New("it is not looked at")
		}
		return nil
	})
	const changed = "ValidatingAdmissionPolicy/stencil-template-reference"
	t.Run("a policy that excludes what it is for", func(t *testing.T) {
		kubectl(t, plane, "", "patch", policy, "--field-manager=mallory", "--type=merge",
			`-p={"spec":{"matchConstraints":{"excludeResourceRules":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*"]}]}}}`)
		events(t, changed+` is not as the release has it: spec.matchConstraints.excludeResourceRules had been changed, last by field manager "mallory"`)
		gauge(t, changed, 1)
	})
	t.Run("it is as it was", func(t *testing.T) {
		// The same field manager: changes of two within a second have no order.
		kubectl(t, plane, "", "patch", policy, "--field-manager=mallory", "--type=merge", `-p={"spec":{"matchConstraints":{"excludeResourceRules":null}}}`)
		gauge(t, changed, 0)
	})
	t.Run("a policy that is told to fail open, and a binding that only warns", func(t *testing.T) {
		kubectl(t, plane, "", "patch", policy, "--field-manager=mallory", "--type=merge", `-p={"spec":{"failurePolicy":"Ignore"}}`)
		kubectl(t, plane, "", "patch", binding, "--field-manager=mallory", "--type=merge", `-p={"spec":{"validationActions":["Warn"]}}`)
		events(t, changed+` is not as the release has it: spec.failurePolicy had been changed, last by field manager "mallory"`)
		events(t, `ValidatingAdmissionPolicyBinding/stencil-template-reference is not as the release has it: spec.validationActions[0] had been changed, last by field manager "mallory"`)
	})
	t.Run("a binding that is deleted", func(t *testing.T) {
		kubectl(t, plane, "", "delete", binding)
		events(t, "ValidatingAdmissionPolicyBinding/stencil-template-reference is not as the release has it: it was deleted")
		gauge(t, "ValidatingAdmissionPolicyBinding/stencil-template-reference", 1)
		always(t, 2*time.Second, func() error {
			if _, err := lookup(t, plane, "get", binding); err == nil {
				return errors.New("it was restored")
			}
			return nil
		})
	})
	t.Run("webhooks are restored all the same", func(t *testing.T) {
		kubectl(t, plane, "", "delete", render)
		harness.Within(t, "it is restored", seconds, func() error {
			_, err := lookup(t, plane, "get", render)
			return err
		})
	})
	t.Run("a binding that requires the index is created with it", func(t *testing.T) {
		kubectl(t, plane, "", "create", "configmap", "stencil-approval-index", "--namespace", install.Namespace)
		harness.Within(t, "the bindings are there", seconds, func() error {
			_, err := lookup(t, plane, "get", "validatingadmissionpolicybindings", "stencil-namespace-coverage", "stencil-undecided-namespaces")
			return err
		})
	})
	t.Run("nothing else is reported", func(t *testing.T) {
		got, err := lookup(t, plane, "get", "events", "--namespace", install.Namespace, "-o", `jsonpath={range .items[?(@.reason=="Changed")]}{.message}{"\n"}{end}`)
		if err != nil || strings.Count(got, "\n") != 3 || strings.Count(got, "stencil-template-reference") != 4 {
			t.Errorf("the events are %v:\n%s", err, got)
		}
	})
}

// restoredGoesWithTheRelease simulates an uninstallation that is so slow that a webhook configuration is restored after helm has deleted it. The
// configuration must not remain.
func restoredGoesWithTheRelease(t *testing.T, plane *controlplane.Plane) {
	t.Helper()
	kubectl(t, plane, "", "delete", render, decide)
	harness.Within(t, "what was deleted is restored", seconds, func() error {
		_, err := lookup(t, plane, "get", render, decide)
		return err
	})
	// Objects that helm deletes after the webhook configurations.
	kubectl(t, plane, "", "delete", "clusterrolebinding/stencil-protected-objects")
	kubectl(t, plane, "", "delete", "clusterrole/stencil-protected-objects")
	kubectl(t, plane, "", "delete", "--namespace", install.Namespace, "configmap/stencil-protected-objects")
	for _, object := range []string{render, decide} {
		harness.Within(t, object+" is gone", time.Minute, func() error {
			if _, err := lookup(t, plane, "get", object); err == nil {
				return fmt.Errorf("%s is still there", object)
			}
			return nil
		})
	}
}
