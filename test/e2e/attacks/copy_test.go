package attacks_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// TestCopiesOfMachines has KubeVirt's own controllers clone a rendered VirtualMachine, and restore one into a new one. They use no template and have
// no values of sensitive parameters, so the copy must be admitted unchanged, including the record.
func TestCopiesOfMachines(t *testing.T) {
	spaces := map[string]string{"that is governed": "copies", "that is free": "free"}
	roles := []gen.UserModifier{gen.UsesTemplates("golden")}
	for which, prefix := range spaces {
		namespace := harness.Namespace(t, stencil.Plane, prefix)
		spaces[which] = namespace
		roles = append(roles, gen.Role(namespace, "edit"))
	}
	governed := spaces["that is governed"]
	copier := harness.User(t, stencil.Plane, "copier", roles...)
	// A template, and an approval that lets only one user copy VirtualMachines.
	copies := gen.Manifest(
		gen.Template("diskless", gen.InNamespace("golden"), gen.Declares("NAME", `{generate: expression, from: "vm-[a-z]{5}"}`), gen.Declares("TOKEN", "{sensitive: true, required: true}"),
			gen.Renders("${NAME}", gen.SmallSpec(), gen.CloudInit("init", "token: ${TOKEN}"), gen.Spec("template: {spec: {hostname: '${NAME}'}}"))),
		gen.Approval("copies", gen.Governs(governed), gen.Approves("golden/diskless"), gen.AnyValue("TOKEN"), gen.Spec("exemptSubjects: [{kind: User, name: copier}]")))
	mustKubectl(t, nil, copies, "apply", "--namespace=golden", "-f", "-")
	t.Cleanup(func() {
		mustKubectl(t, nil, "", "delete", "templateapproval", "copies")
		mustKubectl(t, nil, "", "delete", "vmt", "diskless", "--namespace=golden", "--ignore-not-found")
	})
	field := func(namespace, kind, name, path string) string {
		return strings.TrimSpace(kubectl(t, copier, "", "get", kind, name, "--namespace="+namespace, "-o", "jsonpath={"+path+"}").Stdout)
	}
	for which, namespace := range spaces {
		t.Run("in a namespace "+which, func(t *testing.T) {
			in := "--namespace=" + namespace
			source := vm("source", "golden/diskless", gen.Parameter("TOKEN", "s3cret"))
			eventually(t, "the source is stored", func() string {
				if out := kubectl(t, copier, source, "create", in, "-f", "-"); out.Code != 0 {
					return out.Stderr
				}
				return ""
			})
			record := func(name string) [3]string {
				return [3]string{
					field(namespace, "vm", name, `.metadata.annotations.template\.kubevirt\.io/rendered`),
					field(namespace, "vm", name, `.metadata.labels.vm\.kubevirt\.io/template`),
					field(namespace, "vm", name, `.spec.template.spec.volumes[*].cloudInitNoCloud.userData`),
				}
			}
			want := record("source")
			if !strings.Contains(want[0], `"name":"diskless"`) || want[2] != "token: s3cret" {
				t.Fatalf("the source was not rendered: %q", want)
			}
			await := func(name string, why func() string) {
				t.Helper()
				eventually(t, name+" is there", func() string {
					if field(namespace, "vm", name, ".metadata.name") != name {
						return name + " is not there: " + why()
					}
					return ""
				})
				if diff := cmp.Diff(want, record(name)); diff != "" {
					t.Errorf("%s has another record or content (-source +copy):\n%s", name, diff)
				}
			}
			clone := "apiVersion: clone.kubevirt.io/v1beta1\nkind: VirtualMachineClone\nmetadata: {name: twin}\nspec:\n" +
				"  source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: source}\n  target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: twin}\n" +
				"  labelFilters: [\"!vm.kubevirt.io/*\"]\n"
			snapshot := "apiVersion: snapshot.kubevirt.io/v1beta1\nkind: VirtualMachineSnapshot\nmetadata: {name: before}\nspec: {source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: source}}\n"
			restore := "apiVersion: snapshot.kubevirt.io/v1beta1\nkind: VirtualMachineRestore\nmetadata: {name: again}\nspec: {target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: phoenix}, virtualMachineSnapshotName: before}\n"

			mustKubectl(t, copier, clone, "create", in, "-f", "-")
			await("twin", func() string { return field(namespace, "virtualmachineclone", "twin", ".status") })

			mustKubectl(t, copier, snapshot, "create", in, "-f", "-")
			eventually(t, "the snapshot is ready", func() string {
				if field(namespace, "virtualmachinesnapshot", "before", ".status.readyToUse") != "true" {
					return "the snapshot is not ready: " + field(namespace, "virtualmachinesnapshot", "before", ".status")
				}
				return ""
			})
			mustKubectl(t, copier, restore, "create", in, "-f", "-")
			await("phoenix", func() string { return field(namespace, "virtualmachinerestore", "again", ".status") })
		})
	}
	t.Run("a person who copies by hand is judged like everybody", func(t *testing.T) {
		harness.Bind(t, stencil.Plane, mallory, governed, "edit")
		forged := strings.Replace(mustKubectl(t, mallory, "", "get", "vm", "source", "--namespace="+governed, "-o", "json").Stdout, `"name": "source"`, `"name": "attack"`, 1)
		out := kubectl(t, mallory, forged, "create", "--namespace="+governed, "-f", "-")
		if out.Code == 0 || !strings.Contains(out.Stderr, "spec.template.spec.hostname") && !strings.Contains(out.Stderr, "TOKEN") {
			t.Errorf("it is not refused for what it is: %s%s", out.Stdout, out.Stderr)
		}
	})
}
