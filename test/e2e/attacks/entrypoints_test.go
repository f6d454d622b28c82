package attacks_test

import "testing"

// TestTheOtherEntryPointsAreClosed tries all other kinds of KubeVirt that result in a running VM.
func TestTheOtherEntryPointsAreClosed(t *testing.T) {
	const vmi = `{domain: {memory: {guest: 1Gi}, devices: {}}}`
	for _, tc := range []struct{ name, manifest string }{
		{"a VirtualMachineInstance", "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: attack}\nspec: " + vmi},
		{"a VirtualMachineInstance of the deprecated version", "apiVersion: kubevirt.io/v1alpha3\nkind: VirtualMachineInstance\nmetadata: {name: attack}\nspec: " + vmi},
		{"a VirtualMachineInstanceReplicaSet", "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstanceReplicaSet\nmetadata: {name: attack}\nspec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: " + vmi + "}}"},
		{"a VirtualMachinePool", "apiVersion: pool.kubevirt.io/v1beta1\nkind: VirtualMachinePool\nmetadata: {name: attack}\nspec: {replicas: 1, selector: {matchLabels: {a: b}}, virtualMachineTemplate: {metadata: {labels: {a: b}}, spec: {runStrategy: Always, template: {metadata: {labels: {a: b}}, spec: " + vmi + "}}}}"},
		{"a VirtualMachineClone", "apiVersion: clone.kubevirt.io/v1beta1\nkind: VirtualMachineClone\nmetadata: {name: attack}\nspec: {source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: a}, target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: b}}"},
		{"a VirtualMachineRestore", "apiVersion: snapshot.kubevirt.io/v1beta1\nkind: VirtualMachineRestore\nmetadata: {name: attack}\nspec: {target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: b}, virtualMachineSnapshotName: s}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantDenied(t, kubectl(t, mallory, tc.manifest, "create", "-f", "-"), "ValidatingAdmissionPolicy")
		})
	}
}
