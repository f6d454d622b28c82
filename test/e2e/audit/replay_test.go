package audit_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/platform"
)

// A team whose machines an approval governs, and templates for them: one that runs without a disk from elsewhere, one with an instance type,
// and one with a disk that KubeVirt creates.
const replayed = `
apiVersion: v1
kind: Namespace
metadata: {name: kiosks}
---
apiVersion: v1
kind: Namespace
metadata: {name: stage}
---
apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata: {name: kiosk, namespace: kiosks}
spec:
  parameters: [{name: NAME}]
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec:
      runStrategy: Always
      template:
        spec:
          domain: {memory: {guest: 64Mi}, devices: {disks: [{name: root, disk: {bus: virtio}}]}}
          volumes: [{name: root, containerDisk: {image: "registry.example/kiosk:v1"}}]
---
apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata: {name: sized, namespace: kiosks}
spec:
  parameters: [{name: NAME}]
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec:
      runStrategy: Always
      instancetype: {kind: VirtualMachineClusterInstancetype, name: u1.small}
      template:
        spec:
          domain: {devices: {disks: [{name: root, disk: {bus: virtio}}]}}
          volumes: [{name: root, containerDisk: {image: "registry.example/kiosk:v1"}}]
---
apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata: {name: stand, namespace: kiosks}
spec:
  parameters: [{name: NAME}]
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec:
      runStrategy: Halted
      dataVolumeTemplates:
      - metadata: {name: "${NAME}-root"}
        spec: {source: {blank: {}}, storage: {resources: {requests: {storage: 1Gi}}}}
      template:
        spec:
          domain: {memory: {guest: 64Mi}, devices: {disks: [{name: root, disk: {bus: virtio}}]}}
          volumes: [{name: root, dataVolume: {name: "${NAME}-root"}}]
---
apiVersion: stencil.kubevirt.io/v1alpha1
kind: TemplateApproval
metadata: {name: stage}
spec:
  namespaces: [stage]
  templates: [{namespace: kiosks, selector: {}}]
  overrides: [spec.runStrategy, spec.template.spec.volumes, spec.template.spec.domain.devices.disks]
`

// minute is within how long the audit has to report what has changed.
const minute = time.Minute

// stage is a platform with KubeVirt and an audit that begins when something changes only.
type stage struct{ *platform.Platform }

func newStage(t *testing.T) stage {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	p, err := platform.Start(ctx, platform.Options{
		KubeVirt: true, ControllerManager: true, ManagerArgs: []string{"--audit-interval=24h"}, Log: os.Stderr,
		Values: map[string]any{"doors": map[string]any{"hotplug": "Open"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := stage{p}
	if err := harness.Apply(ctx, p.Plane, replayed, "-"); err != nil {
		t.Fatal(err)
	}
	s.must(t, nil, "", "wait", "namespace/stage", "--for=jsonpath={.metadata.labels.stencil\\.kubevirt\\.io/governed}=true")
	return s
}

func (s stage) kubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, s.Plane, as, stdin, harness.In("stage", arguments)...)
}

func (s stage) must(t *testing.T, as *controlplane.User, stdin string, arguments ...string) string {
	t.Helper()
	return strings.TrimSpace(harness.Must(t, s.Plane, as, stdin, harness.In("stage", arguments)...).Stdout)
}

// user has the role edit in the namespace, and may use the templates.
func (s stage) user(t *testing.T) *controlplane.User {
	t.Helper()
	user, err := gen.User(t.Context(), s.Plane, "tenant", gen.Role("stage", "edit"), gen.UsesTemplates("kiosks"))
	if err != nil {
		t.Fatal(err)
	}
	return user
}

func instantiated(name, from string) string {
	return gen.Manifest(gen.VM(name, gen.FromTemplate("kiosks/"+from)))
}

// pod waits for the launcher pod of a machine.
func (s stage) pod(t *testing.T, name string) (pod string) {
	t.Helper()
	harness.Eventually(t, "virt-controller has made the pod of "+name, func() error {
		pod = s.must(t, nil, "", "get", "pod", "-l", "kubevirt.io=virt-launcher,vm.kubevirt.io/name="+name, "-o", "jsonpath={.items[*].metadata.name}")
		if pod == "" {
			return errors.New(s.kubectl(t, nil, "", "get", "vm,vmi,events", "-o", "wide").Stdout)
		}
		return nil
	})
	return pod
}

// status is what the approval says.
func (s stage) status(t *testing.T) v1alpha1.TemplateApprovalStatus {
	t.Helper()
	var a v1alpha1.TemplateApproval
	if err := yaml.Unmarshal([]byte(s.must(t, nil, "", "get", "templateapproval", "stage", "-o", "yaml")), &a); err != nil {
		t.Fatal(err)
	}
	return a.Status
}

// causes returns the causes of the violations, by name.
func causes(status v1alpha1.TemplateApprovalStatus) map[string]string {
	found := map[string]string{}
	for _, violation := range status.Violations {
		found[violation.Name] = violation.Cause
	}
	return found
}

// conforms waits until so many machines conform and none violates.
func (s stage) conforms(t *testing.T, what string, machines int32) {
	t.Helper()
	harness.Within(t, what, minute, func() error {
		status := s.status(t)
		if status.Conforming == nil || *status.Conforming != machines || *status.Violating != 0 {
			return fmt.Errorf("status: %+v, violations %v", status.Conforming, causes(status))
		}
		return nil
	})
}

// disarm deletes Stencil's policies, their bindings and its webhooks, and what self-protection restores them from.
func (s stage) disarm(t *testing.T) {
	t.Helper()
	s.must(t, nil, "", "delete", "clusterrolebinding/stencil-protected-objects", "clusterrole/stencil-protected-objects")
	s.must(t, nil, "", "delete", "configmap", "stencil-protected-objects", "--namespace", install.Namespace)
	registrations := "validatingadmissionpolicybinding,validatingadmissionpolicy,mutatingwebhookconfiguration,validatingwebhookconfiguration"
	s.must(t, nil, "", "delete", registrations, "--selector=app.kubernetes.io/part-of=stencil")
	harness.Eventually(t, "nothing of Stencil decides on requests", func() error {
		if left := s.must(t, nil, "", "get", registrations, "--selector=app.kubernetes.io/part-of=stencil", "-o", "name"); left != "" {
			return errors.New("there is still " + left)
		}
		if out := s.kubectl(t, nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"probe","labels":{"kubevirt.io":"virt-launcher"}},"spec":{"containers":[{"name":"a","image":"b"}]}}`,
			"create", "--dry-run=server", "-f", "-"); out.Code != 0 {
			return errors.New(out.Stderr)
		}
		return nil
	})
}

// runs does for a pod what a node does, and for its instance what virt-handler does.
func (s stage) runs(t *testing.T, name, pod, node string) {
	t.Helper()
	s.must(t, nil, fmt.Sprintf(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":%q},"target":{"apiVersion":"v1","kind":"Node","name":%q}}`, pod, node),
		"create", "--raw", "/api/v1/namespaces/stage/pods/"+pod+"/binding", "-f", "-")
	ready := func(container string) string {
		return fmt.Sprintf(`{"name":%q,"ready":true,"restartCount":0,"image":"i","imageID":"i@sha256:%064d","state":{"running":{"startedAt":"2026-11-23T12:00:00Z"}}}`, container, 1)
	}
	s.must(t, nil, "", "patch", "pod", pod, "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}],`+
		`"conditions":[{"type":"Ready","status":"True"},{"type":"ContainersReady","status":"True"},{"type":"PodScheduled","status":"True"}],`+
		`"containerStatuses":[`+ready("compute")+","+ready("volumeroot")+`]}}`)
	if s.must(t, nil, "", "get", "vmi", name, "-o", "jsonpath={.status.phase}") == "Running" {
		return
	}
	harness.Eventually(t, "virt-controller has handed instance "+name+" to the node", func() error {
		if phase := s.must(t, nil, "", "get", "vmi", name, "-o", "jsonpath={.status.phase}"); phase != "Scheduled" {
			return errors.New("its phase is " + phase)
		}
		return nil
	})
	handler, err := s.Plane.User("system:serviceaccount:kubevirt:kubevirt-handler", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	s.must(t, handler, "", "patch", "vmi", name, "--type=merge", "-p", `{"status":{"phase":"Running","selinuxContext":"none","conditions":[`+
		`{"type":"Ready","status":"True","lastTransitionTime":"2026-11-23T12:00:00Z"},{"type":"LiveMigratable","status":"True","lastTransitionTime":"2026-11-23T12:00:00Z"}]}}`)
}

// migrate has an instance migrated, and waits for the pod of the target.
func (s stage) migrate(t *testing.T, name, from, annotations string) (target string) {
	t.Helper()
	s.must(t, nil, fmt.Sprintf("apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstanceMigration\nmetadata: {name: %s, annotations: {%s}}\nspec: {vmiName: %s}\n", name, annotations, name), "create", "-f", "-")
	harness.Eventually(t, "virt-controller has made the pod of the target of "+name, func() error {
		for pod := range strings.FieldsSeq(s.must(t, nil, "", "get", "pod", "-l", "kubevirt.io=virt-launcher,vm.kubevirt.io/name="+name, "-o", "jsonpath={.items[*].metadata.name}")) {
			if pod != from {
				target = pod
				return nil
			}
		}
		return errors.New(s.kubectl(t, nil, "", "get", "vmim,vmi,events", "-o", "yaml").Stdout)
	})
	return target
}

const nodes = `
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {kubevirt.io/schedulable: "true"}}
---
apiVersion: v1
kind: Node
metadata: {name: node-2, labels: {kubevirt.io/schedulable: "true"}}
`

// keepsQuiet holds that nothing is reported of what KubeVirt's controllers write while machines start, migrate, and get a volume.
func (s stage) keepsQuiet(t *testing.T, tenant *controlplane.User) {
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
		s.runs(t, name, pods[name], "node-1")
	}
	s.conforms(t, "machines that run conform", 3)
	s.runs(t, "travels", s.migrate(t, "travels", pods["travels"], ""), "node-2")
	s.must(t, nil, "", "patch", "kubevirt", "kubevirt", "--namespace=kubevirt", "--type=merge", "-p", `{"spec":{"configuration":{"developerConfiguration":{"featureGates":["HotplugVolumes"]}}}}`)
	const data = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	s.must(t, tenant, data, "create", "-f", "-")
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
	// What is counted after this one exists has been audited after all that.
	s.must(t, tenant, instantiated("late", "kiosk"), "create", "-f", "-")
	s.pod(t, "late")
	s.conforms(t, "a migration and a volume are not reported", 4)
	pod := s.must(t, nil, "", "get", "pod", "-l", "kubevirt.io=virt-launcher,vm.kubevirt.io/name=travels", "-o", "jsonpath={.items[*].metadata.name}")
	t.Logf("the pods of travels are %s", pod)
}

// TestTheAuditSeesWhatNothingPrevented replays attacks on approvals after Stencil's policies and webhooks were removed. Each is reported
// within a minute, by name and cause, without an audit of everything.
func TestTheAuditSeesWhatNothingPrevented(t *testing.T) {
	s := newStage(t)
	tenant := s.user(t)
	s.keepsQuiet(t, tenant)
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
	claim := func(name string) string {
		return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name + "}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	}
	stand := func(name string) string {
		return strings.ReplaceAll(`
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: NAME, annotations: {template.kubevirt.io/template-ref: kiosks/stand}}
spec:
  runStrategy: Halted
  dataVolumeTemplates: [{metadata: {name: NAME-root}, spec: {source: {blank: {}}, storage: {resources: {requests: {storage: 1Gi}}}}}]
  template:
    spec:
      domain: {memory: {guest: 64Mi}, devices: {disks: [{name: root, disk: {bus: virtio}}]}}
      volumes: [{name: root, dataVolume: {name: NAME-root}}]
`, "NAME", name)
	}
	const spec = "{domain: {memory: {guest: 64Mi}, devices: {}}}"
	lacks := "was not created for this machine: it lacks the label kubevirt.io/created-by, which KubeVirt gives to disks that it creates"

	type step struct {
		stdin string
		args  []string
	}
	attacks := []struct {
		name string
		// of is the name of what is reported, when it is not the first word of name.
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
			steps: []step{{args: []string{"create", "-f", "-"}, stdin: "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: free}\nspec: " + spec + "\n"}},
		},
		{
			name: "the disk before the VM", of: "early", want: "claim early-root " + lacks,
			steps: []step{{args: []string{"create", "-f", "-"}, stdin: claim("early-root")}, {args: []string{"create", "-f", "-"}, stdin: stand("early")}},
		},
		{
			name: "the disk between the VM and KubeVirt", of: "raced", want: "claim raced-root " + lacks,
			steps: []step{{args: []string{"create", "-f", "-"}, stdin: stand("raced")}, {args: []string{"create", "-f", "-"}, stdin: claim("raced-root")}},
		},
		{
			name: "a VM of no template", of: "handmade", want: "it names no template",
			steps: []step{{args: []string{"create", "-f", "-"}, stdin: "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: handmade}\nspec: {runStrategy: Halted, template: {spec: " + spec + "}}\n"}},
		},
		{
			name: "a VM with more than its template", of: "more", want: "adds to template kiosks/kiosk: spec.template.spec.nodeSelector.disktype",
			steps: []step{{args: []string{"create", "-f", "-"}, stdin: `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: more, annotations: {template.kubevirt.io/template-ref: kiosks/kiosk}}
spec:
  runStrategy: Halted
  template:
    spec:
      nodeSelector: {disktype: fast}
      domain: {memory: {guest: 64Mi}, devices: {disks: [{name: root, disk: {bus: virtio}}]}}
      volumes: [{name: root, containerDisk: {image: "registry.example/kiosk:v1"}}]
`}},
		},
	}
	for _, tc := range attacks {
		for _, step := range tc.steps {
			// As an administrator: what is shown is not who may, but that it is seen.
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
