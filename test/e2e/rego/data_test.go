package rego_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// strategies allows the run strategies of a list in the ConfigMap allowed.
const strategies = `
package strategies

deny contains sprintf("run strategy %s is none of %s", [input.object.spec.runStrategy, concat(", ", data.cluster.allowed.strategies)]) if {
  not input.object.spec.runStrategy in data.cluster.allowed.strategies
}`

// strategiesSpec is the spec of a policy about VMs with label test: allowed.
const strategiesSpec = `{match: {objectSelector: {matchLabels: {test: allowed}}}, data: [{name: allowed, configMapKey: {name: allowed, key: policy.yaml}}]%s}`

// allowed returns the ConfigMap with a list of run strategies.
func allowed(namespace, list string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: allowed, namespace: %s}, data: {policy.yaml: "strategies: [%s]"}}`, namespace, list)
}

func TestDataOfConfigMaps(t *testing.T) {
	writer := rbacv1.PolicyRule{APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines"}, Verbs: []string{"*"}}
	// What ClusterRole edit permits, which is aggregated and needs a controller that does not run here.
	maps := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}
	ada := harness.User(t, stencil.Plane, "ada", gen.Role("default", "stencil-edit"), gen.Permits("default", writer, maps))
	t.Cleanup(func() {
		must(t, "", "delete", "vm", "strategic", "--ignore-not-found")
		must(t, "", "delete", "configmap", "allowed", "--namespace="+install.Namespace, "--ignore-not-found")
		must(t, "", "delete", "configmap", "allowed", "--namespace=default", "--ignore-not-found")
	})
	dryRun := []string{"create", "--dry-run=server", "-f", "-"}
	vm := func(strategy string) string {
		return vmManifest("strategic", "allowed", gen.Spec("{runStrategy: "+strategy+"}"))
	}

	// A policy whose data does not exist is stored with a warning, and its failure mode decides.
	missing := "data.cluster.allowed has no value: ConfigMap " + install.Namespace + "/allowed does not exist; create it with the key policy.yaml"
	warning := applied(t, "strategies", fmt.Sprintf(strategiesSpec, ""), strategies)
	if want := "Warning: " + missing + ". Until then the policy cannot be evaluated, and denies every request that it selects"; strings.TrimSpace(warning) != want {
		t.Errorf("the admin is told %q, want %q", warning, want)
	}
	becomes(t, "strategies", map[string]string{"Active": "False DataMissing"})
	tries(t, ada, vm("Halted"), false, "policy strategies could not be evaluated: "+missing, dryRun...)

	// A ConfigMap of a user's own namespace is not read, and users cannot write the one that is.
	tries(t, ada, allowed("default", "Halted"), true, "created", "create", "-f", "-")
	tries(t, ada, allowed(install.Namespace, "Halted"), false, `cannot create resource "configmaps"`, "create", "-f", "-")
	tries(t, ada, vm("Halted"), false, missing, dryRun...)

	must(t, allowed(install.Namespace, "Halted, Manual"), "create", "-f", "-")
	active(t, "strategies")
	tries(t, ada, vm("Halted"), true, "created", "create", "-f", "-")
	tries(t, ada, strings.Replace(vm("Always"), "strategic", "other", 1), false, "policy strategies (medium): run strategy Always is none of Halted, Manual", dryRun...)
	// The audit may have run before the VM existed. Another value has it run again.
	must(t, allowed(install.Namespace, "Halted, Manual, Once"), "apply", "-f", "-")
	audited(t, "strategies", 1, 0)

	// A change of the ConfigMap changes what is allowed, also of the VMs that exist, without a write to the policy.
	must(t, allowed(install.Namespace, "Manual"), "apply", "-f", "-")
	tries(t, ada, strings.Replace(vm("Halted"), "strategic", "other", 1), false, "run strategy Halted is none of Manual", dryRun...)
	audited(t, "strategies", 0, 1, "default/strategic: run strategy Halted is none of Manual")
	restart(t, nil)
	tries(t, ada, strings.Replace(vm("Halted"), "strategic", "other", 1), false, "run strategy Halted is none of Manual", dryRun...)

	// A value that cannot be read, and failure mode Allow.
	must(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: allowed, namespace: `+install.Namespace+`}, data: {policy.yaml: "strategies: [Manual"}}`, "apply", "-f", "-")
	tries(t, ada, strings.Replace(vm("Manual"), "strategic", "other", 1), false, "key policy.yaml of ConfigMap "+install.Namespace+"/allowed is no valid YAML", dryRun...)
	applied(t, "strategies", fmt.Sprintf(strategiesSpec, ", failureMode: Allow"), strategies)
	tries(t, ada, strings.Replace(vm("Always"), "strategic", "other", 1), true, "created", dryRun...)
}

// limits has the rules of TestDataOfNamespaces.
const limits = `
package limits

import data.lib

deny contains sprintf("%d others with a GPU", [data.cluster.gpus.count]) if {
  input.object.metadata.labels.gpu
  data.cluster.gpus.count + 1 > 2
}

deny contains sprintf("%d CPUs and %d Mi are used by others", [data.cluster.all.cpus, data.cluster.all.memory / lib.quantity("1Mi")]) if {
  data.cluster.all.memory > lib.quantity("2Gi")
}

deny contains sprintf("the quota is used: %s", [data.cluster.quota.used.pods]) if data.cluster.quota.used.pods == data.cluster.quota.hard.pods`

const limitsSpec = `{match: {objectSelector: {matchLabels: {test: limits}}}, data: [
{name: gpus, virtualMachines: {selector: {matchExpressions: [{key: gpu, operator: Exists}]}}}, {name: all, virtualMachines: {}}, {name: quota, resourceQuota: {name: team}}]%s}`

func TestDataOfNamespaces(t *testing.T) {
	must(t, instancetype("VirtualMachineClusterInstancetype", "limits-1", "", 2), "apply", "-f", "-")
	here, elsewhere := harness.Namespace(t, stencil.Plane, "limited"), harness.Namespace(t, stencil.Plane, "unlimited")
	writer := rbacv1.PolicyRule{APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines"}, Verbs: []string{"*"}}
	// What ClusterRole edit permits, which is aggregated and needs a controller that does not run here.
	quotas := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"resourcequotas"}, Verbs: []string{"get", "list", "watch"}}
	ada := harness.User(t, stencil.Plane, "ada", gen.Role(here, "stencil-edit"), gen.Permits(here, writer, quotas), gen.Role(elsewhere, "stencil-edit"), gen.Permits(elsewhere, writer, quotas))
	t.Cleanup(func() {
		must(t, "", "delete", "vm", "--all", "--namespace="+here)
		must(t, "", "delete", "vm", "--all", "--namespace="+elsewhere)
		must(t, "", "delete", "virtualmachineclusterinstancetype", "limits-1")
	})
	vm := func(namespace, name, label string, more ...gen.Modifier) string {
		return vmManifest(name, "limits", append(more, gen.InNamespace(namespace), gen.Label(label, "a100"))...)
	}
	makes := []string{"create", "-f", "-"}

	// The VirtualMachines are read now, and no request is denied before.
	tries(t, ada, vm(here, "gpu-1", "gpu"), true, "created", makes...)
	if warning := applied(t, "limits", fmt.Sprintf(limitsSpec, ""), limits); strings.Contains(warning, "has no value") {
		t.Errorf("the admin is warned: %s", warning)
	}
	active(t, "limits")
	tries(t, ada, vm(here, "gpu-2", "gpu"), true, "created", makes...)
	third := "policy limits (medium): 2 others with a GPU"
	tries(t, ada, vm(here, "gpu-3", "gpu"), false, third, makes...)
	tries(t, ada, vm(elsewhere, "gpu-3", "gpu"), true, "created", makes...)
	tries(t, ada, vm(here, "web", "nic"), true, "created", append(makes, "--dry-run=server")...)
	// A VirtualMachine does not count itself.
	tries(t, ada, "", true, "labeled", "label", "vm", "gpu-2", "color=blue", "--namespace="+here)
	// The audit may have run before the VMs existed. Another version has it run again.
	applied(t, "limits", fmt.Sprintf(limitsSpec, ", timeoutMilliseconds: 99"), limits)
	audited(t, "limits", 3, 0)

	// A manager that starts has all numbers before it decides.
	restart(t, nil)
	if result := harness.Kubectl(t, stencil.Plane, ada, vm(here, "gpu-3", "gpu"), makes...); result.Code == 0 || !strings.Contains(result.Stderr, third) {
		t.Errorf("after a restart: exit code %d, %s", result.Code, result.Stderr)
	}
	must(t, "", "delete", "vm", "gpu-1", "--namespace="+here)
	tries(t, ada, vm(here, "gpu-3", "gpu"), true, "created", makes...)

	// Sizes of instance types, too.
	sized := gen.Spec("{instancetype: {name: limits-1}}")
	for _, name := range []string{"one", "two", "three"} {
		tries(t, ada, vm(elsewhere, name, "nic", sized), true, "created", makes...)
	}
	tries(t, ada, vm(elsewhere, "four", "nic", sized), false, "policy limits (medium): 7 CPUs and 3072 Mi are used by others", makes...)

	// A quota. The controller that counts what is used does not run here.
	quota := fmt.Sprintf("{apiVersion: v1, kind: ResourceQuota, metadata: {name: team, namespace: %s}, spec: {hard: {pods: 3}}}", here)
	tries(t, ada, quota, false, `cannot create resource "resourcequotas"`, makes...)
	must(t, quota, makes...)
	must(t, "", "patch", "resourcequota", "team", "--namespace="+here, "--subresource=status", "--type=merge", `--patch={"status":{"hard":{"pods":"3"},"used":{"pods":"3"}}}`)
	tries(t, ada, "", false, "policy limits (medium): the quota is used: 3", "label", "vm", "gpu-2", "color=red", "--overwrite", "--namespace="+here)
	must(t, "", "delete", "resourcequota", "team", "--namespace="+here)
	tries(t, ada, "", true, "labeled", "label", "vm", "gpu-2", "color=red", "--overwrite", "--namespace="+here)
}
