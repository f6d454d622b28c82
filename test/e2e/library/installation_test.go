package library_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/install"
)

const ours = "stencil.kubevirt.io/policy-library=stencil-policy-library"

// stored are the policies of the library in the cluster.
func stored(t *testing.T) map[string]v1alpha1.VirtualMachinePolicy {
	t.Helper()
	var list v1alpha1.VirtualMachinePolicyList
	if err := json.Unmarshal([]byte(must(t, "", "get", "vmpol", "--selector="+ours, "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	policies := map[string]v1alpha1.VirtualMachinePolicy{}
	for _, policy := range list.Items {
		policies[policy.Name] = policy
	}
	return policies
}

// condition is "status reason" of a condition of the newest generation.
func condition(policy v1alpha1.VirtualMachinePolicy, kind string) string {
	for _, c := range policy.Status.Conditions {
		if c.Type == kind && c.ObservedGeneration == policy.Generation {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return "unknown"
}

// upgrade upgrades the release with these policies of the library and their settings.
func upgrade(t *testing.T, switchedOn map[string]any) {
	t.Helper()
	options := stencil.Options()
	options.Values = map[string]any{"policies": map[string]any{"library": switchedOn}}
	if err := install.Chart(t.Context(), stencil.Plane, options); err != nil {
		t.Fatal(err)
	}
}

func TestTheFirstInstallationHasEveryPolicyInForce(t *testing.T) {
	names, err := policyNames()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the policies of the library are in force", func() string {
		policies := stored(t)
		var missing []string
		for _, name := range names {
			policy, found := policies[name]
			if !found {
				missing = append(missing, name+" is not there")
			} else if got := condition(policy, "Active"); !strings.HasPrefix(got, "True ") {
				missing = append(missing, name+": "+got)
			}
		}
		if len(policies) > len(names) {
			missing = append(missing, "there are more than switched on")
		}
		return strings.Join(missing, "\n")
	})
}

// The other tests require the library as it was first, so this one comes last: tests run in the order of their files and of the functions in them.
func TestZTheLibraryFollowsTheValues(t *testing.T) {
	const registries, strategy, mine = "allowed-registries", "run-strategy", "vtpm"
	upgrade(t, map[string]any{
		registries: map[string]any{"enabled": true, "enforcement": "Warn", "parameters": map[string]any{"registries": []any{"quay.io"}}},
		strategy:   map[string]any{"enabled": true},
	})
	follows := func(want ...string) {
		t.Helper()
		eventually(t, "every policy of the library is in force", func() string {
			policies := stored(t)
			var names []string
			for name, policy := range policies {
				names = append(names, name)
				if got := condition(policy, "Active"); !strings.HasPrefix(got, "True ") {
					return name + ": " + got
				}
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != strings.Join(want, " ") {
				return fmt.Sprintf("there are %q, want %q\n%s", got, want, stencil.Manager.Logs())
			}
			return ""
		})
	}
	follows(registries, strategy)
	eventually(t, "the parameters and the enforcement are those of the values", func() string {
		got := must(t, "", "get", "vmpol", registries, "-o", "jsonpath={.spec.parameters} {.spec.enforcement}")
		if want := `{"registries":["quay.io"]} Warn`; got != want {
			return fmt.Sprintf("parameters and enforcement are %s, want %s", got, want)
		}
		return ""
	})

	t.Run("what somebody changes is restored", func(t *testing.T) {
		must(t, "", "patch", "vmpol", strategy, "--type=merge", "--patch", `{"spec":{"enforcement":"Audit","parameters":{"strategies":["Manual"]}}}`)
		eventually(t, "the parameters are those of the values", func() string {
			// The manifest has no enforcement: other field managers may set fields that it omits.
			if got := string(stored(t)[strategy].Spec.Parameters.Raw); !strings.Contains(got, "Always") {
				return "parameters are " + got
			}
			return ""
		})
		must(t, "", "delete", "vmpol", strategy)
		follows(registries, strategy)
	})

	t.Run("somebody's own policy of that name is left alone", func(t *testing.T) {
		must(t, gen.Manifest(gen.Policy(mine, "package mine\ndeny contains \"no\" if false\n")), "create", "-f", "-")
		t.Cleanup(func() { must(t, "", "delete", "vmpol", mine) })
		upgrade(t, map[string]any{mine: map[string]any{"enabled": true}, registries: map[string]any{"enabled": true}})
		follows(registries)
		eventually(t, "an event tells of the conflict", func() string {
			events := must(t, "", "get", "events", "--namespace="+install.Namespace, "--field-selector=involvedObject.name=stencil-policy-library", "-o", "jsonpath={.items[*].message}")
			if want := "policy vtpm of the library is enabled, but a VirtualMachinePolicy of that name exists"; !strings.Contains(events, want) {
				return "the events do not say so: " + events
			}
			return ""
		})
		if rego := must(t, "", "get", "vmpol", mine, "-o", "jsonpath={.spec.rego}"); !strings.Contains(rego, "package mine") {
			t.Errorf("it is now %s", rego)
		}
	})

	t.Run("parameters that the schema does not have are refused by Helm", func(t *testing.T) {
		options := stencil.Options()
		options.Values = map[string]any{"policies": map[string]any{"library": map[string]any{
			registries: map[string]any{"enabled": true, "parameters": map[string]any{"registry": "quay.io"}},
		}}}
		if err := install.Chart(t.Context(), stencil.Plane, options); err == nil || !strings.Contains(err.Error(), "registry") {
			t.Errorf("the upgrade ended with %v", err)
		}
	})

	t.Run("an uninstallation takes them along, and the hold of what stays", func(t *testing.T) {
		must(t, gen.Manifest(gen.Policy("nothing-at-all", "package nothing\ndeny contains \"no machines today\" if input.request.operation == \"CREATE\"\n")), "create", "-f", "-")
		createVM := func() controlplane.Result {
			return kubectl(t, ada, gen.Manifest(gen.VM("free", gen.LeastSpec())),
				"create", "--namespace=team-a", "--dry-run=server", "-f", "-")
		}
		eventually(t, "the policy is in force", func() string {
			if got := createVM(); !strings.Contains(got.Stderr, "no machines today") {
				return fmt.Sprintf("the policy is not in force: exit %d: %s", got.Code, got.Stderr)
			}
			return ""
		})
		if err := install.Uninstall(t.Context(), stencil.Plane, stencil.Options()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the policies of the library are gone", func() string {
			if left := stored(t); len(left) > 0 {
				return "some are left:\n" + must(t, "", "get", "vmpol", "--selector="+ours, "-o", "jsonpath={range .items[*]}{.metadata}{end}")
			}
			return ""
		})
		eventually(t, "VirtualMachines are created again", func() string {
			if got := createVM(); got.Code != 0 {
				return "VirtualMachines are still refused: " + got.Stderr
			}
			return ""
		})
		if got := must(t, "", "get", "vmpol", "-o", "name"); !strings.Contains(got, "nothing-at-all") {
			t.Errorf("the policies that are left are %q", got)
		}
	})
}
