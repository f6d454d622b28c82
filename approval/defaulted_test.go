package approval

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/internal/testfile"
)

// The table is made from the defaulter's own, and checked there.
func TestEveryDefaultIsKnownAsAnAddition(t *testing.T) {
	content := testfile.Read(t, "../docs/defaulting-fields.md")
	// Defaults with certain values only, and places that are listed by the places below them.
	limited := []string{
		"domain.cpu.sockets", "domain.cpu.cores", "domain.cpu.threads", "domain.memory.guest",
		"domain.devices.disks[*]", "domain.devices.disks[*].disk", "domain.devices.interfaces", "networks", "domain.devices.inputs",
	}
	var want []string
	for _, line := range strings.Split(string(content), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 7 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		field, written := strings.Trim(cells[1], " `"), strings.TrimSpace(cells[5])
		if written != "no" && !slices.Contains(limited, field) {
			want = append(want, "spec.template.spec."+field)
		}
	}
	got := append(slices.Clone(defaultedPlaces), clusterAdditions...)
	if len(want) < 30 {
		t.Fatalf("the table has %d fields", len(want))
	}
	for _, place := range want {
		covered := slices.ContainsFunc(got, func(found string) bool {
			return place == found || strings.HasPrefix(place, found+".") || strings.HasPrefix(place, found+"[")
		})
		if !covered {
			t.Errorf("%s is written, and the audit would take it for somebody's addition", place)
		}
	}
}

func TestDefaultsAreNoAdditionsOfUsers(t *testing.T) {
	const (
		bare  = `{template: {spec: {domain: {resources: {requests: {memory: 2Gi, cpu: "3"}}, devices: {}}, volumes: [{name: root}]}}}`
		empty = `{template: {spec: {domain: {devices: {}}}}}`
	)
	within := func(base, more string) string { return strings.Replace(base, "domain: {", "domain: {"+more, 1) }
	for name, tc := range map[string]struct {
		rendered, stored string
		want             []string
	}{
		"all of them": {
			rendered: bare,
			stored: `{template: {spec: {architecture: amd64, domain: {machine: {type: pc-q35-9.2}, features: {acpi: {enabled: true}}, firmware: {uuid: a},
				cpu: {sockets: 3, cores: 1, threads: 1}, memory: {guest: 2Gi}, resources: {requests: {memory: 2Gi, cpu: "3"}},
				devices: {rng: {}, disks: [{name: root, disk: {bus: virtio, pciAddress: "0000:05:00.0"}}], interfaces: [{name: default, masquerade: {}, model: virtio, pciAddress: "0000:01:00.0"}]}},
				networks: [{name: default, pod: {}}], volumes: [{name: root}]}}}`,
		},
		"more sockets than the resources say": {
			rendered: bare, stored: within(bare, "cpu: {sockets: 64}, "), want: []string{"spec.template.spec.domain.cpu.sockets"},
		},
		"cores": {rendered: bare, stored: within(bare, "cpu: {cores: 2}, "), want: []string{"spec.template.spec.domain.cpu.cores"}},
		"more memory than the resources say": {
			rendered: bare, stored: within(bare, "memory: {guest: 64Gi}, "), want: []string{"spec.template.spec.domain.memory.guest"},
		},
		"a disk for a volume that the template has not": {
			rendered: empty, stored: `{template: {spec: {domain: {devices: {disks: [{name: own, disk: {bus: virtio}}]}}}}}`,
			want: []string{"spec.template.spec.domain.devices.disks[name=own]"},
		},
		"a disk for a volume of the template, with more to it": {
			rendered: bare, stored: strings.Replace(bare, "devices: {}", "devices: {disks: [{name: root, shareable: true, disk: {bus: virtio}}]}", 1),
			want: []string{"spec.template.spec.domain.devices.disks[name=root]"},
		},
		"a network of another kind called default": {
			rendered: empty, stored: `{template: {spec: {domain: {devices: {interfaces: [{name: default, bridge: {}}]}}, networks: [{name: default, multus: {networkName: lan}}]}}}`,
			want: []string{"spec.template.spec.networks[name=default]"},
		},
		"a second interface": {
			rendered: empty, stored: `{template: {spec: {domain: {devices: {interfaces: [{name: default, masquerade: {}}, {name: lan, sriov: {}}]}}}}}`,
			want: []string{"spec.template.spec.domain.devices.interfaces[name=lan]"},
		},
		"an interface with a port": {
			rendered: empty, stored: `{template: {spec: {domain: {devices: {interfaces: [{name: default, masquerade: {}, ports: [{port: 22}]}]}}}}}`,
			want: []string{"spec.template.spec.domain.devices.interfaces[name=default]"},
		},
		"a host device": {
			rendered: empty, stored: `{template: {spec: {domain: {devices: {hostDevices: [{name: gpu, deviceName: a/gpu}]}}}}}`,
			want: []string{"spec.template.spec.domain.devices.hostDevices[name=gpu]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := ClusterAdditions()
			if err != nil {
				t.Fatal(err)
			}
			object := func(text string) map[string]any {
				var spec map[string]any
				if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
					t.Fatal(err)
				}
				return map[string]any{"spec": spec}
			}
			var got []string
			for _, path := range found.WithDefaults().Beyond(object(tc.rendered), object(tc.stored)) {
				got = append(got, path.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("what people added (-want +got):\n%s", diff)
			}
		})
	}
}
