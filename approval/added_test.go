package approval_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/approval"
)

func TestAdded(t *testing.T) {
	for _, tc := range []struct {
		name, rendered, stored string
		want                   []string
	}{
		{name: "nothing", rendered: "spec: {a: 1, l: [{name: a}]}", stored: "spec: {a: 1, l: [{name: a}]}"},
		{name: "another value is none", rendered: "spec: {a: 1, m: {x: y}}", stored: "spec: {a: 2, m: {x: z}}"},
		{name: "what is missing is none", rendered: "spec: {a: 1, l: [{name: a}], m: {x: y}}", stored: "spec: {}"},
		{name: "a value", rendered: "spec: {}", stored: "spec: {a: 1}", want: []string{"spec.a"}},
		{name: "a value deep down", rendered: "spec: {m: {a: 1}}", stored: "spec: {m: {a: 1, b: {c: 1, d: false}}}", want: []string{"spec.m.b.c", "spec.m.b.d"}},
		{name: "an empty map that says something", rendered: "spec: {m: {}}", stored: "spec: {m: {tpm: {}}}", want: []string{"spec.m.tpm.*"}},
		{name: "an empty map that says nothing", rendered: "spec: {template: {spec: {domain: {}}}}", stored: "spec: {template: {metadata: {creationTimestamp: null}, spec: {domain: {resources: {}, devices: {}}}}}"},
		{name: "zeros, null and empty lists", rendered: "spec: {}", stored: `spec: {a: "", b: 0, c: null, d: [], e: "0"}`},
		{name: "an item", rendered: "spec: {l: [{name: a}]}", stored: "spec: {l: [{name: b, x: 1}, {name: a}]}", want: []string{"spec.l[name=b]"}},
		{name: "a field of an item, in another order", rendered: "spec: {l: [{name: a, x: 1}, {name: b}]}", stored: "spec: {l: [{name: b, z: 1}, {name: a, x: 2}]}", want: []string{"spec.l[name=b].z"}},
		{name: "the first items", rendered: "spec: {}", stored: "spec: {l: [{name: b}, {name: a}]}", want: []string{"spec.l[name=a]", "spec.l[name=b]"}},
		{name: "one more item without a name", rendered: "spec: {l: [x]}", stored: "spec: {l: [x, y]}", want: []string{"spec.l[*]"}},
		{name: "a field of an item without a name", rendered: "spec: {l: [{x: 1}]}", stored: "spec: {l: [{x: 1, z: 1}]}", want: []string{"spec.l[0].z"}},
		{name: "a list in place of a value", rendered: "spec: {l: x}", stored: "spec: {l: [x]}", want: []string{"spec.l[*]"}},
		{name: "labels of the machine itself are not looked at, those of the guest are", rendered: "{}", stored: "metadata: {labels: {a: b}}\nspec: {template: {metadata: {labels: {a: b}}}}", want: []string{"spec.template.metadata.labels.a"}},
		{name: "the status is not looked at", rendered: "spec: {}", stored: "status: {a: b}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := texts(approval.Added(tree(t, tc.rendered), tree(t, tc.stored)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBeyond(t *testing.T) {
	const kubevirt = `spec:
  instancetype: {name: u1.small, revisionName: web-1-revision}
  preference: {name: fedora, kind: VirtualMachinePreference}
  dataVolumeTemplates: [{metadata: {name: web-1}, spec: {storage: {storageClassName: fast}}}]
  template:
    metadata: {annotations: {kubevirt.io/pci-topology-version: v3}}
    spec:
      architecture: amd64
      domain:
        machine: {type: q35}
        firmware: {uuid: a, serial: b}
        devices: {interfaces: [{name: default, masquerade: {}, macAddress: "02:00:00:00:00:01"}]}
        resources: {}
`
	for _, tc := range []struct {
		name, rendered, stored string
		more                   []string
		want                   []string
	}{
		{
			name: "what KubeVirt and a MAC pool add",
			rendered: "spec: {instancetype: {name: u1.small}, preference: {inferFromVolume: root}, dataVolumeTemplates: [{metadata: {name: web-1}, spec: {storage: {}}}], " +
				"template: {spec: {domain: {devices: {interfaces: [{name: default, masquerade: {}}]}}}}}",
			stored: kubevirt,
		},
		{
			name: "an instance type that was not to be inferred", rendered: "spec: {}", stored: "spec: {instancetype: {name: huge, kind: x}}",
			want: []string{"spec.instancetype.kind", "spec.instancetype.name"},
		},
		{
			name: "an interface with an address is not an address", rendered: "spec: {template: {spec: {domain: {devices: {}}}}}",
			stored: "spec: {template: {spec: {domain: {devices: {interfaces: [{name: lan, macAddress: x}]}}}}}",
			want:   []string{"spec.template.spec.domain.devices.interfaces[name=lan]"},
		},
		{
			name: "firmware has more to it than an identity", rendered: "spec: {}",
			stored: "spec: {template: {spec: {domain: {firmware: {uuid: a, kernelBoot: {kernelArgs: init=/bin/sh}}}}}}",
			want:   []string{"spec.template.spec.domain.firmware.kernelBoot.kernelArgs"},
		},
		{
			name: "other annotations of the guest", rendered: "spec: {}",
			stored: "spec: {template: {metadata: {annotations: {kubevirt.io/pci-topology-version: v3, hooks.kubevirt.io/hookSidecars: x}}}}",
			want:   []string{`spec.template.metadata.annotations["hooks.kubevirt.io/hookSidecars"]`},
		},
		{
			name: "what holds a VM back until the objects of its template exist", rendered: "spec: {}",
			stored: "spec: {template: {metadata: {annotations: {objects.template.kubevirt.io/hold: objects, objects.template.kubevirt.io/pending: x, objects.template.kubevirt.io: x}, labels: {objects.template.kubevirt.io/hold: x}}}}",
			want: []string{`spec.template.metadata.annotations["objects.template.kubevirt.io"]`, `spec.template.metadata.annotations["objects.template.kubevirt.io/pending"]`,
				`spec.template.metadata.labels["objects.template.kubevirt.io/hold"]`},
		},
		{
			name: "what this cluster is known to add", rendered: "spec: {}", stored: "spec: {template: {spec: {nodeSelector: {zone: a, gpu: b}}}}",
			more: []string{"spec.template.spec.nodeSelector.zone"},
			want: []string{"spec.template.spec.nodeSelector.gpu"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cluster, err := approval.ClusterAdditions(tc.more...)
			if err != nil {
				t.Fatal(err)
			}
			got := texts(cluster.Beyond(tree(t, tc.rendered), tree(t, tc.stored)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClusterAdditionsAreOverrides(t *testing.T) {
	if _, err := approval.ClusterAdditions("spec..x"); err == nil || err.Error() != `reading "spec..x": column 6: expected a field or * after the dot, found '.'` {
		t.Errorf("got %v", err)
	}
}

func TestChangesByUser(t *testing.T) {
	const (
		before  = "spec: {template: {spec: {domain: {devices: {}}}}}"
		added   = "spec: {template: {spec: {architecture: amd64, domain: {devices: {}, machine: {type: q35}}}}}\n"
		machine = "spec.template.spec.domain.machine.type"
	)
	claims := func(fields ...string) string {
		text := "metadata:\n  managedFields:\n  - {manager: kubectl-create, operation: Update, fieldsV1: {f:spec: {f:runStrategy: {}}}}\n"
		for _, f := range fields {
			text += "  - {manager: kubectl-edit, operation: Update, fieldsV1: " + f + "}\n"
		}
		return text
	}
	for _, tc := range []struct {
		name, old, new string
		want           []string
	}{
		{name: "what KubeVirt adds", old: before, new: added + claims()},
		{name: "beside what the user sets", old: before, new: "spec: {runStrategy: Always, template: {spec: {domain: {devices: {}, machine: {type: q35}}}}}\n" + claims(), want: []string{"spec.runStrategy"}},
		{name: "a client tracks the map, not the type", old: before, new: added + claims(`{f:spec: {f:template: {f:spec: {f:domain: {f:machine: {".": {}}}}}}}`)},
		{name: "the user sets the type", old: before, new: added + claims("{f:spec: {f:template: {f:spec: {f:domain: {f:machine: {.: {}, f:type: {}}}}}}}"), want: []string{machine}},
		{name: "the user sets the map as a whole", old: before, new: added + claims("{f:spec: {f:template: {f:spec: {f:domain: {f:machine: {}}}}}}"), want: []string{machine}},
		{name: "the user sets the spec as a whole", old: before, new: added + claims("{f:spec: {}}"), want: []string{"spec.template.spec.architecture", machine}},
		{name: "nobody tracks", old: before, new: added, want: []string{"spec.template.spec.architecture", machine}},
		{name: "tracking was reset", old: before, new: added + "metadata: {managedFields: []}", want: []string{"spec.template.spec.architecture", machine}},
		{name: "another value is no addition", old: "spec: {template: {spec: {domain: {machine: {type: pc}}}}}", new: "spec: {template: {spec: {domain: {machine: {type: q35}}}}}\n" + claims(), want: []string{machine}},
		{name: "nor is a removal", old: added, new: before + "\n" + claims(), want: []string{"spec.template.spec.architecture", "spec.template.spec.domain.machine.*"}},
		{name: "a place at which the cluster adds nothing", old: before, new: "spec: {template: {spec: {hostname: h, domain: {devices: {}}}}}\n" + claims(), want: []string{"spec.template.spec.hostname"}},
		{
			name: "in a list a client owns all items or none",
			old:  "spec: {template: {spec: {domain: {devices: {interfaces: [{name: a}]}}}}}",
			new:  "spec: {template: {spec: {domain: {devices: {interfaces: [{name: a, macAddress: x}]}}}}}\n" + claims(),
			want: []string{"spec.template.spec.domain.devices.interfaces[name=a].macAddress"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			additions, err := approval.ClusterAdditions()
			if err != nil {
				t.Fatal(err)
			}
			got := texts(additions.ChangesByUser(tree(t, tc.old), tree(t, tc.new)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
		})
	}
}
