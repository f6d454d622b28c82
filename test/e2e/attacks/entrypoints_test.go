package attacks_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

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

// TestImportsOfMachines acts as a user of virt-import with the role edit and what virt-import adds to it, and as its controller, which creates the
// VirtualMachine or VirtualMachineTemplate of an artifact with an account of its own.
func TestImportsOfMachines(t *testing.T) {
	if err := stencil.Plane.InstallImports(t.Context()); err != nil {
		t.Fatal(err)
	}
	space, free := namespaces.Of(t), "imports-free"
	harness.Must(t, stencil.Plane, nil, gen.Manifest(gen.Namespace(free)), "apply", "-f", "-")
	imports := rbacv1.PolicyRule{APIGroups: []string{"import.kubevirt.io"}, Resources: []string{"virtualmachineimports"}, Verbs: []string{"*"}}
	user := func(name string, modifiers ...gen.UserModifier) func(namespace, manifest string) controlplane.Result {
		as, err := gen.User(t.Context(), stencil.Plane, name, modifiers...)
		if err != nil {
			t.Fatal(err)
		}
		return func(namespace, manifest string) controlplane.Result {
			return harness.Kubectl(t, stencil.Plane, as, manifest, "create", "--namespace="+namespace, "-f", "-")
		}
	}
	ida := user("ida", gen.Role(space, "edit"), gen.Role(free, "edit"), gen.Permits(space, imports), gen.Permits(free, imports))
	creates := rbacv1.PolicyRule{
		APIGroups: []string{"kubevirt.io", "template.kubevirt.io"}, Resources: []string{"virtualmachines", "virtualmachinetemplates"}, Verbs: []string{"create", "get"},
	}
	controller := user("system:serviceaccount:virt-import:virt-import-controller", gen.Permits("", creates))
	const artifact = "apiVersion: import.kubevirt.io/v1alpha1\nkind: VirtualMachineImport\nmetadata: {name: %s}\nspec: {source: {registry: {url: 'docker://registry.example/vms/fedora:v1'}}}"

	wantDenied(t, ida(space, fmt.Sprintf(artifact, "attack")), "VirtualMachineImports lead to virtual machines that no approval evaluates", "entryPoints.import")
	if got := ida(free, fmt.Sprintf(artifact, "fedora")); got.Code != 0 {
		t.Errorf("an import into a namespace that is not governed: %s", got.Stderr)
	}
	// An import that is older than the approval: its controller creates what the artifact has.
	machine := gen.Manifest(gen.VM("attack", gen.SmallSpec()))
	wantDenied(t, controller(space, machine), "the VirtualMachine names no template")
	record := gen.Manifest(gen.VM("attack", gen.SmallSpec(), gen.FromTemplate("golden/fedora")))
	wantDenied(t, controller(space, record), "virt-import-controller", "use")
	if got := controller(free, machine); got.Code != 0 {
		t.Errorf("an imported VM in a namespace that is not governed: %s", got.Stderr)
	}
	for _, namespace := range []string{space, free} {
		template := gen.Manifest(gen.Template("imported", gen.InNamespace(namespace), gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec())))
		if got := controller(namespace, template); got.Code != 0 || !strings.Contains(got.Stdout, "created") {
			t.Errorf("an imported template in %s: %s", namespace, got.Stderr)
		}
	}
}
