package policies_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/vmstencil/stencil/approval"
)

const (
	ownedAtCreation = "a VirtualMachine in a governed namespace is created without ownerReferences and without finalizers of others than KubeVirt: remove " +
		"them, or a cluster admin can exempt the controller that needs them with exemptSubjects of the TemplateApproval"
	ownershipChanged = "finalizers and ownerReferences of virtual machines cannot be changed in a governed namespace: a cluster admin can exempt " +
		"the controller that needs to with exemptSubjects of the TemplateApproval"
)

// A finalizer of another party lets no user delete the VM, and for a false owner the garbage collector deletes it.
func TestWhoOwnsVirtualMachines(t *testing.T) {
	policy := evaluate(t, "running-machines", map[string]string{"exemptUsers": `["virt-controller"]`, "exemptAccounts": "['kubevirt-controller']"})
	const (
		own     = "kubevirt.io/virtualMachineControllerFinalize"
		foreign = "example.com/hold"
	)
	owner := func(uid string) any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": uid}
	}
	owned := func(finalizers, owners []any) map[string]any {
		made := vm("golden/fedora")
		metadata, _ := made["metadata"].(map[string]any)
		if finalizers != nil {
			metadata["finalizers"] = finalizers
		}
		if owners != nil {
			metadata["ownerReferences"] = owners
		}
		return made
	}
	for _, tc := range []struct {
		name        string
		user        string // ada if empty
		resource    string // virtualmachines if empty
		object, old map[string]any
		want        string
	}{
		{name: "created with neither", object: owned(nil, nil)},
		{name: "created with empty lists", object: owned([]any{}, []any{})},
		{name: "created with KubeVirt's finalizer", object: owned([]any{own}, nil)},
		{name: "created with a foreign finalizer", object: owned([]any{foreign}, nil), want: ownedAtCreation},
		{name: "created with a foreign finalizer beside KubeVirt's", object: owned([]any{own, foreign}, nil), want: ownedAtCreation},
		{name: "created with another finalizer of KubeVirt's group", object: owned([]any{"kubevirt.io/a"}, nil), want: ownedAtCreation},
		{name: "created with a finalizer of the garbage collector", object: owned([]any{"orphan"}, nil), want: ownedAtCreation},
		{name: "created with an owner", object: owned(nil, []any{owner("1")}), want: ownedAtCreation},
		{name: "created by KubeVirt's controller with both, as a pool does", user: "virt-controller", object: owned([]any{own, foreign}, []any{owner("1")})},
		{name: "created by an account of its name with every verb", user: "system:serviceaccount:evil:kubevirt-controller", object: owned(nil, []any{owner("1")}), want: ownedAtCreation},

		{name: "a foreign finalizer is added", old: owned([]any{own}, nil), object: owned([]any{own, foreign}, nil), want: ownershipChanged},
		{name: "a finalizer of the garbage collector is added", old: owned(nil, nil), object: owned([]any{"foregroundDeletion"}, nil), want: ownershipChanged},
		{name: "KubeVirt's finalizer is added", old: owned(nil, nil), object: owned([]any{own}, nil), want: ownershipChanged},
		{name: "a finalizer is replaced", old: owned([]any{own}, nil), object: owned([]any{foreign}, nil), want: ownershipChanged},
		{name: "a finalizer is removed", old: owned([]any{own, foreign}, nil), object: owned([]any{own}, nil)},
		{name: "all finalizers are removed", old: owned([]any{own, "foregroundDeletion"}, nil), object: owned(nil, nil)},
		{name: "finalizers in another order", old: owned([]any{own, foreign}, nil), object: owned([]any{foreign, own}, nil)},
		{name: "an owner is added", old: owned(nil, nil), object: owned(nil, []any{owner("1")}), want: ownershipChanged},
		{name: "an owner is replaced", old: owned(nil, []any{owner("1")}), object: owned(nil, []any{owner("2")}), want: ownershipChanged},
		{name: "an owner is removed", old: owned(nil, []any{owner("1"), owner("2")}), object: owned(nil, []any{owner("2")})},
		{name: "an owner is removed and a finalizer added", old: owned(nil, []any{owner("1")}), object: owned([]any{foreign}, nil), want: ownershipChanged},
		{name: "both stay", old: owned([]any{foreign}, []any{owner("1")}), object: owned([]any{foreign}, []any{owner("1")})},
		{name: "a finalizer of an instance is removed", resource: "virtualmachineinstances", old: owned([]any{own}, nil), object: owned(nil, nil), want: ownershipChanged},
		{name: "an owner of an instance is removed", resource: "virtualmachineinstances", old: owned(nil, []any{owner("1")}), object: owned(nil, nil), want: ownershipChanged},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name, operation, resource := tc.user, admission.Create, tc.resource
			if name == "" {
				name = "ada"
			}
			if tc.old != nil {
				operation = admission.Update
			}
			var of *kindOf
			if resource != "" {
				tc.object["kind"], tc.old["kind"] = "VirtualMachineInstance", "VirtualMachineInstance"
				of = &kindOf{kind: schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachineInstance"}, resource: resource}
			}
			denial, _ := policy.decide(t, request{
				operation: operation, user: &user.DefaultInfo{Name: name}, of: of, name: "vm", object: tc.object, oldObject: tc.old,
				namespace: stated("team-a", approval.NamespaceState{Governed: "true", Approvals: "1;a;;"}),
				bypasses:  bypasses{wildcard + "system:serviceaccount:evil:kubevirt-controller"},
			})
			if denial != tc.want {
				t.Errorf("got %q, want %q", denial, tc.want)
			}
		})
	}
}
