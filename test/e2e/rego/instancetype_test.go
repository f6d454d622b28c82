package rego_test

import (
	"fmt"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
)

// instancetype is the manifest of an instance type with a number of CPUs.
func instancetype(kind, name, namespace string, cpus int) string {
	return fmt.Sprintf("apiVersion: instancetype.kubevirt.io/v1beta1\nkind: %s\nmetadata: {name: %s, namespace: %q}\nspec: {cpu: {guest: %d}, memory: {guest: 1Gi}}\n", kind, name, namespace, cpus)
}

func preference(name string) string {
	return fmt.Sprintf("apiVersion: instancetype.kubevirt.io/v1beta1\nkind: VirtualMachineClusterPreference\nmetadata: {name: %s}\nspec: {}\n", name)
}

// sized returns a VirtualMachine in default with a label that the policy below selects, and a size: a field of its spec in JSON.
func sized(size string) string { return vmManifest("sized", "sized", gen.Spec("{"+size+"}")) }

func TestASizeLimitCannotBeDodged(t *testing.T) {
	must(t, instancetype("VirtualMachineClusterInstancetype", "size-small", "", 2), "apply", "-f", "-")
	must(t, instancetype("VirtualMachineClusterInstancetype", "size-huge", "", 64), "apply", "-f", "-")
	must(t, instancetype("VirtualMachineInstancetype", "size-own", "default", 32), "apply", "-f", "-")
	revision := func(name, labels, of string, cpus int) string {
		return fmt.Sprintf(`
apiVersion: apps/v1
kind: ControllerRevision
metadata: {name: %s, namespace: default, labels: {%s}}
revision: 0
data: {apiVersion: instancetype.kubevirt.io/v1beta1, kind: VirtualMachineClusterInstancetype, metadata: {name: %s}, spec: {cpu: {guest: %d}, memory: {guest: 1Gi}}}
`, name, labels, of, cpus)
	}
	ours := "instancetype.kubevirt.io/object-kind: VirtualMachineClusterInstancetype, instancetype.kubevirt.io/object-name: size-small"
	must(t, revision("size-then", ours, "size-small", 48), "apply", "-f", "-")
	must(t, revision("size-same", ours, "size-small", 2), "apply", "-f", "-")
	must(t, revision("size-forged", "", "size-small", 2), "apply", "-f", "-")
	t.Cleanup(func() {
		must(t, "", "delete", "virtualmachineclusterinstancetype", "size-small", "size-huge", "size-late", "--ignore-not-found")
		must(t, "", "delete", "virtualmachineinstancetype", "size-own")
		must(t, "", "delete", "controllerrevision", "size-then", "size-same", "size-forged")
	})
	applied(t, "sizes", "match: {objectSelector: {matchLabels: {test: sized}}}", `package x
deny contains {"msg": sprintf("%v CPUs are more than 4", [cpus.count]), "field": cpus.field} if {
  some cpus in data.lib.cpus
  cpus.count > 4
}`)
	active(t, "sizes")
	for _, tc := range []struct {
		name, size string
		want       string // in the denial; the request passes when empty
	}{
		{"inline", `"template":{"spec":{"domain":{"cpu":{"cores":8},"devices":{}}}}`, "8 CPUs are more than 4 at spec.template.spec.domain.cpu"},
		{"by an instance type", `"instancetype":{"name":"size-huge"}`, "64 CPUs are more than 4 at spec.instancetype.name"},
		{"by one that is small", `"instancetype":{"name":"size-small"}`, ""},
		{"by one of the namespace", `"instancetype":{"kind":"virtualmachineinstancetypes","name":"size-own"}`, "32 CPUs are more than 4"},
		{"by a revision of one that is small now", `"instancetype":{"name":"size-small","revisionName":"size-then"}`, "48 CPUs are more than 4"},
		{"by one with the content of now", `"instancetype":{"name":"size-small","revisionName":"size-same"}`, ""},
		{"by a revision that KubeVirt did not make", `"instancetype":{"name":"size-small","revisionName":"size-forged"}`, `policy sizes could not be evaluated: Not found: "ControllerRevision default/size-forged": it does not exist, or KubeVirt did not make it of an instance type or a preference at spec.instancetype`},
		{"by one that comes later", `"instancetype":{"name":"size-late"}`, `policy sizes could not be evaluated: Not found: "VirtualMachineClusterInstancetype size-late": it does not exist at spec.instancetype`},
		{"by a volume", `"instancetype":{"inferFromVolume":"root"}`, "policy sizes could not be evaluated: Required value: it has not been inferred from a volume yet at spec.instancetype.name"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.want == "" {
				awaitAnswer(t, nil, sized(tc.size), true, nil, "create", "--dry-run=server", "-f", "-")
				return
			}
			awaitAnswer(t, nil, sized(tc.size), false, []string{tc.want}, "create", "--dry-run=server", "-f", "-")
		})
	}

	t.Run("an instance type that comes is known at once", func(t *testing.T) {
		must(t, instancetype("VirtualMachineClusterInstancetype", "size-late", "", 2), "apply", "-f", "-")
		if out := kubectl(t, sized(`"instancetype":{"name":"size-late"}`), "create", "--dry-run=server", "-f", "-"); out.Code != 0 {
			t.Error(out.Stderr)
		}
	})
	t.Run("a change that makes a machine too large", func(t *testing.T) {
		t.Cleanup(func() { must(t, "", "delete", "vm", "sized", "--ignore-not-found") })
		must(t, sized(`"instancetype":{"name":"size-small"}`), "create", "-f", "-")
		awaitAnswer(t, nil, "", false, []string{"64 CPUs are more than 4"}, "patch", "vm", "sized", "--type=merge", `-p={"spec":{"instancetype":{"name":"size-huge"}}}`)
	})
}
