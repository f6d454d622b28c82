package audit

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

type sizes map[string]string

func (s sizes) Resolve(_ context.Context, reference sizing.Reference) (map[string]any, error) {
	text, known := s[reference.String()]
	if !known {
		return nil, errors.New("it does not exist")
	}
	var object map[string]any
	return object, yaml.Unmarshal([]byte(text), &object)
}

func overrides(a *v1alpha1.TemplateApproval) {
	a.Spec.Overrides = []string{"spec.template.metadata.annotations.note"}
}

// TestWhatRuns compares VMs with instances as KubeVirt creates them, and with other instances.
func TestWhatRuns(t *testing.T) {
	known := sizes{
		"VirtualMachineClusterInstancetype u1": "{spec: {cpu: {guest: 4}, memory: {guest: 8Gi}, annotations: {of: size}, schedulerName: own, gpus: [{name: g, deviceName: a/gpu}]}}",
		"VirtualMachineClusterPreference p":    "{spec: {cpu: {preferredCPUTopology: cores}, annotations: {of: preference, vm.kubevirt.io/os: fedora}}}",
	}
	const kubevirts = `kubevirt.io/latest-observed-api-version: v1, kubevirt.io/vm-generation: "1"`
	for name, tc := range map[string]struct {
		vm, vmi   string
		overrides []string
		want      []string
	}{
		"another instance type, where users may choose one": {
			overrides: []string{"spec.instancetype"},
			vm:        `{instancetype: {name: u1}}`, vmi: `{metadata: {labels: {app: evil}, annotations: {of: size}}, spec: {networks: [{name: default}], domain: {cpu: {cores: 2}}}}`,
			want: []string{"spec.template.metadata.labels.app"},
		},
		"what KubeVirt fills in": {
			vm: `{metadata: {labels: {app: a}}, spec: {domain: {memory: {guest: 1024Mi}}, volumes: [{name: root, containerDisk: {image: i}}]}}`,
			vmi: `{metadata: {labels: {app: a, kubevirt.io/nodeName: n, vm.kubevirt.io/name: x}, annotations: {` + kubevirts + `}},
				spec: {domain: {cpu: {sockets: 1, cores: 1, threads: 1, maxSockets: 4, model: host-model}, memory: {guest: 1Gi, maxGuest: 4Gi}, machine: {type: q35}},
				networks: [{name: default, pod: {}}], volumes: [{name: root, containerDisk: {image: i, imagePullPolicy: IfNotPresent}}]}}`,
		},
		"a size that resources say": {
			vm:  `{spec: {domain: {resources: {requests: {memory: 2Gi, cpu: "1500m"}}}}}`,
			vmi: `{spec: {domain: {cpu: {sockets: 2, cores: 1, threads: 1}, memory: {guest: 2Gi}, resources: {requests: {memory: 2Gi}}}, networks: [{name: default}]}}`,
		},
		"an instance type and a preference": {
			vm: `{instancetype: {name: u1}, preference: {name: p}, metadata: {annotations: {of: machine}}}`,
			vmi: `{metadata: {annotations: {of: machine, vm.kubevirt.io/os: fedora}}, spec: {schedulerName: own, networks: [{name: default}],
				domain: {cpu: {sockets: 1, cores: 4, threads: 1}, memory: {guest: 8192Mi}, devices: {gpus: [{name: g, deviceName: a/gpu}]}}}}`,
		},
		"one that is not known is not compared": {vm: `{instancetype: {name: u2}}`, vmi: `{spec: {domain: {cpu: {sockets: 64}}}}`},
		"what tools for running machines write": {
			vm: `{spec: {}}`, vmi: `{metadata: {labels: {velero.io/a: b}, annotations: {exact: c}}, spec: {networks: [{name: default}]}}`,
		},
		"what an override permits is not there before the next start": {
			vm: `{metadata: {annotations: {note: new}}, spec: {}}`, vmi: `{metadata: {annotations: {note: old}}, spec: {networks: [{name: default}]}}`,
		},
		"annotations and labels that reach the pod": {
			vm:  `{metadata: {annotations: {a: b}}}`,
			vmi: `{metadata: {labels: {app: trusted}, annotations: {a: c, hooks.kubevirt.io/hookSidecars: "[]", exactly: no, kubevirt.io/ignitiondata: x}}, spec: {networks: [{name: default}]}}`,
			want: []string{
				"spec.template.metadata.annotations.a", "spec.template.metadata.annotations.exactly", `spec.template.metadata.annotations["hooks.kubevirt.io/hookSidecars"]`,
				`spec.template.metadata.annotations["kubevirt.io/ignitiondata"]`, "spec.template.metadata.labels.app",
			},
		},
		"another size than its instance type's": {
			vm: `{instancetype: {name: u1}}`,
			vmi: `{metadata: {annotations: {of: size}}, spec: {schedulerName: own, networks: [{name: default}],
				domain: {cpu: {sockets: 64, cores: 1, threads: 1}, memory: {guest: 1Ti}, devices: {gpus: [{name: g, deviceName: b/gpu}, {name: h, deviceName: b/gpu}]}}}}`,
			want: []string{
				"spec.template.spec.domain.cpu.sockets", "spec.template.spec.domain.devices.gpus[name=g].deviceName",
				"spec.template.spec.domain.devices.gpus[name=h]", "spec.template.spec.domain.memory.guest",
			},
		},
		"devices, volumes, networks and where it runs": {
			vm: `{spec: {tolerations: [{key: a}]}}`,
			vmi: `{spec: {networks: [{name: default}, {name: other, multus: {networkName: other/net}}], volumes: [{name: v, persistentVolumeClaim: {claimName: c, hotpluggable: true}}],
				nodeSelector: {node: n}, schedulerName: s, priorityClassName: p, accessCredentials: [{sshPublicKey: {}}], domain: {devices: {hostDevices: [{name: d, deviceName: x}]}}}}`,
			want: []string{
				"spec.template.spec.accessCredentials[*]", "spec.template.spec.domain.devices.hostDevices[name=d]", "spec.template.spec.networks[name=other]",
				"spec.template.spec.nodeSelector.node", "spec.template.spec.priorityClassName", "spec.template.spec.schedulerName", "spec.template.spec.tolerations[*]",
				"spec.template.spec.volumes[name=v]",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var spec, instance map[string]any
			for text, into := range map[string]*map[string]any{tc.vm: &spec, tc.vmi: &instance} {
				if err := yaml.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			vm := map[string]any{"spec": map[string]any{"template": spec}, "status": map[string]any{"created": true}}
			for _, key := range []string{"instancetype", "preference"} {
				if spec[key] != nil {
					vm["spec"].(map[string]any)[key] = spec[key]
				}
			}
			c := &instanceCheck{sizes: known, writable: []string{"velero.io/", "exact"}}
			of := c.of(t.Context(), vm, "n")
			seen, _ := machine.View(machine.KindInstance, instance)
			var got []string
			if of != nil {
				got = differing(of, c.runs(seen, nil, nil), []*approval.Approval{approve("one", overrides, func(a *v1alpha1.TemplateApproval) {
					a.Spec.Overrides = append(a.Spec.Overrides, tc.overrides...)
				})})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// listed is a pager over instances, with one in each page.
type listed []string

func (l listed) page(_ context.Context, namespace, token string, visit func(map[string]any)) (string, error) {
	at := len(token)
	var object map[string]any
	if err := yaml.Unmarshal([]byte(l[at]), &object); err != nil {
		return "", err
	}
	object["metadata"].(map[string]any)["namespace"] = namespace
	visit(object)
	if at+1 == len(l) {
		return "", nil
	}
	return strings.Repeat("x", at+1), nil
}

func TestInstancesAreComparedWithTheMachineThatControlsThem(t *testing.T) {
	satisfied := evaluation{satisfied: []*approval.Approval{approve("one", overrides)}}
	c := &instanceCheck{sizes: sizes{}, retries: oneTry, lister: listed{
		`{metadata: {name: own, finalizers: [kubevirt.io/foregroundDeleteVirtualMachine], ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: own, controller: true, uid: "1"}]}, spec: {schedulerName: evil}}`,
		`{metadata: {name: passes, ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: own, controller: true, uid: "1"}]}}`,
		`{metadata: {name: held, finalizers: [example.com/a], ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: held, controller: true, uid: "3"}, {apiVersion: v1, kind: ConfigMap, name: none}]}, spec: {networks: [{name: default}]}}`,
		`{metadata: {name: free, ownerReferences: [{kind: VirtualMachine, name: free, uid: "2"}]}, spec: {schedulerName: evil}}`,
	}}
	page := []found{
		{subject: subject{namespace: "n", uid: "1"}, evaluation: satisfied, running: c.runs(nil, nil, nil)},
		{subject: subject{namespace: "n", uid: "2"}, evaluation: satisfied, running: c.runs(nil, nil, nil)},
		{subject: subject{namespace: "n", uid: "1"}, evaluation: satisfied},
		{subject: subject{namespace: "n", uid: "3"}, evaluation: satisfied, running: c.runs(nil, nil, nil)},
	}
	if err := c.apply(t.Context(), page); err != nil {
		t.Fatal(err)
	}
	want := &cause{rule: "InstanceDifferent", approval: "one", message: "its VirtualMachineInstance differs from it at spec.template.spec.schedulerName"}
	held := &cause{rule: "ForeignOwner", approval: "one",
		message: "its VirtualMachineInstance has owner ConfigMap none, finalizer example.com/a, which belongs to no controller of virtual machines"}
	for i, wants := range []*cause{want, nil, nil, held} {
		if diff := cmp.Diff(wants, page[i].evaluation.cause, cmp.AllowUnexported(cause{})); diff != "" {
			t.Errorf("machine %d (-want +got):\n%s", i, diff)
		}
	}
}
