package policies_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
)

// entryPoint is a kind that results in a virtual machine.
type entryPoint struct {
	// value is the name of the chart's value below entryPoints, plural the name of the kind in denials.
	value, plural string
	kind          string
	resource      string
	// versions are those with their group.
	versions []string
	spec     object
	// grows is a change of spec, nil where the spec is immutable.
	grows object
	// scales reports that there is a subresource scale.
	scales bool
}

func entryPoints() []entryPoint {
	instance := object{"domain": object{"devices": object{}}}
	selector := object{"matchLabels": object{"a": "b"}}
	labelled := object{"labels": object{"a": "b"}}
	return []entryPoint{
		{
			value: "virtualMachineInstance", plural: "VirtualMachineInstances", kind: "VirtualMachineInstance", resource: "virtualmachineinstances",
			versions: []string{"kubevirt.io/v1", "kubevirt.io/v1alpha3"}, spec: instance,
		},
		{
			value: "virtualMachinePool", plural: "VirtualMachinePools", kind: "VirtualMachinePool", resource: "virtualmachinepools",
			versions: []string{"pool.kubevirt.io/v1alpha1", "pool.kubevirt.io/v1beta1"},
			spec: object{"replicas": 2, "selector": selector, "virtualMachineTemplate": object{
				"metadata": labelled, "spec": object{"runStrategy": "Halted", "template": object{"metadata": labelled, "spec": instance}},
			}},
			grows: object{"virtualMachineTemplate": object{"spec": object{"runStrategy": "Always"}}}, scales: true,
		},
		{
			value: "replicaSet", plural: "VirtualMachineInstanceReplicaSets", kind: "VirtualMachineInstanceReplicaSet", resource: "virtualmachineinstancereplicasets",
			versions: []string{"kubevirt.io/v1", "kubevirt.io/v1alpha3"},
			spec:     object{"replicas": 2, "selector": selector, "template": object{"metadata": labelled, "spec": instance}},
			grows:    object{"template": object{"spec": object{"nodeSelector": object{"a": "b"}}}}, scales: true,
		},
		{
			value: "clone", plural: "VirtualMachineClones", kind: "VirtualMachineClone", resource: "virtualmachineclones",
			versions: []string{"clone.kubevirt.io/v1alpha1", "clone.kubevirt.io/v1beta1"},
			spec:     object{"source": object{"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "a"}},
		},
		{
			value: "restore", plural: "VirtualMachineRestores", kind: "VirtualMachineRestore", resource: "virtualmachinerestores",
			versions: []string{"snapshot.kubevirt.io/v1alpha1", "snapshot.kubevirt.io/v1beta1"},
			spec:     object{"target": object{"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "a"}, "virtualMachineSnapshotName": "a"},
		},
		{
			value: "preset", plural: "VirtualMachineInstancePresets", kind: "VirtualMachineInstancePreset", resource: "virtualmachineinstancepresets",
			versions: []string{"kubevirt.io/v1", "kubevirt.io/v1alpha3"},
			spec:     object{"selector": selector, "domain": object{"devices": object{}}},
			grows:    object{"domain": object{"cpu": object{"cores": 8}}},
		},
		{
			value: "import", plural: "VirtualMachineImports", kind: "VirtualMachineImport", resource: "virtualmachineimports",
			versions: []string{"import.kubevirt.io/v1alpha1"},
			spec:     object{"source": object{"registry": object{"url": "docker://registry.example/vms/fedora:v1"}}},
		},
	}
}

// newest is the newest version.
func (d entryPoint) newest() string { return d.versions[len(d.versions)-1] }

func (d entryPoint) manifest(version string, metadata object) string {
	return encode(object{"apiVersion": version, "kind": d.kind, "metadata": metadata, "spec": d.spec})
}

// in is the resource in a version.
func (d entryPoint) in(version string) schema.GroupVersionResource {
	group, version, _ := strings.Cut(version, "/")
	return schema.GroupVersionResource{Group: group, Version: version, Resource: d.resource}
}

func (d entryPoint) closed(approval string) denial {
	return denial{"entry-points", d.plural + " lead to virtual machines that no approval evaluates, so creating, changing and scaling them up is denied " +
		"in a namespace that TemplateApproval " + approval + " governs: create VirtualMachines from an approved template; " +
		"a cluster admin can allow this kind with the chart value entryPoints." + d.value}
}

func TestEntryPointsAreClosed(t *testing.T) {
	t.Parallel()
	space, free := namespace(t), namespace(t)
	exempt := newOwner(t, "handyman")
	for _, d := range entryPoints() {
		mustPass(t, acting(t, nil, space).create(d.manifest(d.versions[0], object{"name": "stored"})))
	}
	approve(t, "closes", object{"namespaces": []any{space}, "exemptSubjects": []any{object{"kind": "User", "name": exempt.Name}}})
	t.Run("each", func(t *testing.T) {
		for _, d := range entryPoints() {
			t.Run(d.value, func(t *testing.T) {
				t.Parallel()
				create := func(as *controlplane.User, version, namespace string, metadata object) controlplane.Result {
					return dry(t, as, namespace).create(d.manifest(version, metadata))
				}
				patch := func(as *controlplane.User, version string, change object, subresources ...string) controlplane.Result {
					return dry(t, as, space).patch(d.in(version), "stored", encode(change), subresources...)
				}
				for _, version := range d.versions {
					d.closed("closes").check(t, create(owner, version, space, object{"name": "a"}))
					d.closed("closes").check(t, create(owner, version, space, object{"generateName": "a-"}))
					denial{}.check(t, create(owner, version, free, object{"name": "a"}))
					denial{}.check(t, create(controller, version, space, object{"name": "a"}))
					denial{}.check(t, create(exempt, version, space, object{"name": "a"}))
				}
				d.closed("closes").check(t, create(nil, d.versions[0], space, object{"name": "a"}))
				d.closed("closes").check(t, dry(t, owner, space).apply(d.manifest(d.newest(), object{"name": "a"})))
				d.closed("closes").check(t, create(owner, d.newest(), space, object{"name": "a", "annotations": object{templateRef: "golden/fedora"}}))
				d.closed("closes").check(t, acting(t, owner, space).create(d.manifest(d.newest(), object{"name": "a"})))

				// Stored objects are not affected.
				for _, version := range d.versions {
					if d.kind != "VirtualMachineInstance" { // see TestRunningMachinesStayAsTheyWereApproved
						denial{}.check(t, patch(owner, version, object{"metadata": object{"labels": object{"a": "b"}, "finalizers": []any{"example.com/a"}}}))
					}
					denial{}.check(t, patch(owner, version, object{"spec": d.spec}))
					if d.grows == nil {
						continue
					}
					d.closed("closes").check(t, patch(owner, version, object{"spec": d.grows}))
					denial{}.check(t, patch(controller, version, object{"spec": d.grows}))
					denial{}.check(t, patch(exempt, version, object{"spec": d.grows}))
				}
				denial{}.check(t, dry(t, owner, space).delete(d.in(d.versions[0]), "stored"))
				if d.scales {
					for _, version := range d.versions {
						d.closed("closes").check(t, patch(owner, version, object{"spec": object{"replicas": 3}}, "scale"))
						denial{}.check(t, patch(owner, version, object{"spec": object{"replicas": 2}}, "scale"))
						denial{}.check(t, patch(owner, version, object{"spec": object{"replicas": 1}}, "scale"))
						denial{}.check(t, patch(owner, version, object{"spec": object{"replicas": 0}}, "scale"))
						denial{}.check(t, patch(controller, version, object{"spec": object{"replicas": 3}}, "scale"))
						denial{}.check(t, patch(owner, version, object{"status": object{"replicas": 1}}, "status"))
					}
					// With kubectl scale, as users do. It has no server-side dry run.
					scale := func(replicas string) controlplane.Result {
						resource := d.in(d.newest())
						return kubectl(t, owner, "", "scale", resource.Resource+"."+resource.Version+"."+resource.Group, "stored", "--namespace", space, "--replicas="+replicas)
					}
					d.closed("closes").check(t, scale("3"))
					denial{}.check(t, scale("0"))
					d.closed("closes").check(t, scale("1"))
				}
			})
		}
	})
	t.Run("an approval that warns closes nothing", func(t *testing.T) {
		enforce(t, "closes", "Warn")
		d := entryPoints()[0]
		eventually(t, "the approval warns", func() string {
			return denial{}.complaint(dry(t, owner, space).create(d.manifest(d.versions[0], object{"name": "a"})))
		})
		enforce(t, "closes", "Deny")
	})
}

// Each value permits one kind and no other.
func TestEntryPointsCanBeOpened(t *testing.T) {
	space := namespace(t)
	mustPass(t, acting(t, nil, space).create(plain("stored")))
	approve(t, "closes", object{"namespaces": []any{space}})
	t.Cleanup(func() { open(t) })
	closed := map[string]func() string{"hotplug": func() string { return unplugged("closes").complaint(plug(t, space)) }}
	opened := map[string]func() string{"hotplug": func() string { return denial{}.complaint(plug(t, space)) }}
	for _, d := range entryPoints() {
		create := func() controlplane.Result {
			return dry(t, owner, space).create(d.manifest(d.versions[0], object{"name": "a"}))
		}
		closed[d.value] = func() string { return d.closed("closes").complaint(create()) }
		opened[d.value] = func() string { return denial{}.complaint(create()) }
	}
	for value := range opened {
		t.Run(value, func(t *testing.T) {
			open(t, value)
			eventually(t, "the entry point is open", opened[value])
			for other, complaint := range closed {
				if other != value {
					eventually(t, "the entry point "+other+" is closed", complaint)
				}
			}
		})
	}
}

// newOwner returns a user who owns everything.
func newOwner(t *testing.T, name string, rules ...rbacv1.PolicyRule) *controlplane.User {
	t.Helper()
	user := harness.User(t, shared.Plane(t), name)
	harness.Grant(t, shared.Plane(t), user, "", append(rules, ownership...)...)
	return user
}

// open makes the policies permit these kinds and no others, as the chart does for its values below entryPoints.
func open(t *testing.T, values ...string) {
	t.Helper()
	opened := []any{}
	for _, value := range values {
		opened = append(opened, value)
	}
	for _, name := range []string{"stencil-entry-points", "stencil-hotplug", "stencil-migrations", "stencil-undecided-namespaces"} {
		variables, _, err := unstructured.NestedSlice(acting(t, nil, "").get(admissionPolicies, name).Object, "spec", "variables")
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(variables, func(variable any) bool { return variable.(object)["name"] == "openEntryPoints" })
		if at < 0 {
			t.Fatalf("%s has no setting for open entry points", name)
		}
		mustPass(t, acting(t, nil, "").patchJSON(admissionPolicies, name, encode([]any{object{
			"op": "replace", "path": fmt.Sprintf("/spec/variables/%d/expression", at), "value": encode(opened),
		}})))
	}
}
