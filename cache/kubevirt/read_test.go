package kubevirt

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/defaulting"
)

func TestWhatKubeVirtSays(t *testing.T) {
	for name, tc := range map[string]struct {
		kubevirt string
		want     defaulting.Cluster
	}{
		"nothing": {kubevirt: `{}`},
		"version and architecture": {
			kubevirt: `status: {observedKubeVirtVersion: v1.8.2, defaultArchitecture: arm64}`,
			want:     defaulting.Cluster{KubeVirt: "v1.8.2", DefaultArchitecture: "arm64"},
		},
		"an installation in progress": {
			kubevirt: `status: {targetKubeVirtVersion: v1.9.0}`,
			want:     defaulting.Cluster{KubeVirt: "v1.9.0"},
		},
		"an update in progress": {
			kubevirt: `status: {observedKubeVirtVersion: v1.8.2, targetKubeVirtVersion: v1.9.0}`,
			want:     defaulting.Cluster{KubeVirt: "v1.8.2", Target: "v1.9.0"},
		},
		"a complete update": {
			kubevirt: `status: {observedKubeVirtVersion: v1.9.0, targetKubeVirtVersion: v1.9.0}`,
			want:     defaulting.Cluster{KubeVirt: "v1.9.0"},
		},
		"an architecture that is configured wins over what was found": {
			kubevirt: "spec: {configuration: {architectureConfiguration: {defaultArchitecture: amd64}}}\nstatus: {defaultArchitecture: arm64}",
			want:     defaulting.Cluster{DefaultArchitecture: "amd64"},
		},
		"machine types by architecture": {
			kubevirt: `spec: {configuration: {architectureConfiguration: {amd64: {machineType: pc-q35-9.0}, arm64: {machineType: virt-9.0}}}}`,
			want:     defaulting.Cluster{MachineTypes: map[string]string{"amd64": "pc-q35-9.0", "arm64": "virt-9.0"}},
		},
		"the machine type of all architectures wins": {
			kubevirt: `spec: {configuration: {machineType: q35, architectureConfiguration: {amd64: {machineType: pc-q35-9.0}}}}`,
			want:     defaulting.Cluster{MachineTypes: map[string]string{"amd64": "q35", "arm64": "q35", "s390x": "q35"}},
		},
		"the network, and plugins of which it is known what they attach": {
			kubevirt: `spec: {configuration: {network: {defaultNetworkInterface: bridge, binding: {own: {domainAttachmentType: tap}, passt: {sidecarImage: x, domainAttachmentType: tap}, other: {}}}}}`,
			want:     defaulting.Cluster{NetworkInterface: "bridge", TapBindings: []string{"own"}},
		},
		"host devices": {
			kubevirt: `spec: {configuration: {permittedHostDevices: {pciHostDevices: [{resourceName: a/gpu}], mediatedDevices: [{resourceName: a/vgpu}], usb: [{resourceName: a/key}]}}}`,
			want: defaulting.Cluster{HostDevices: map[string]defaulting.HostDeviceKind{
				"a/gpu": defaulting.HostDevicePCI, "a/vgpu": defaulting.HostDeviceMDev, "a/key": defaulting.HostDeviceUSB,
			}},
		},
		"feature gates and a display": {
			kubevirt: `{metadata: {annotations: {kubevirt.io/vga-display-efi-x86: ""}}, spec: {configuration: {developerConfiguration: {featureGates: [Snapshot, PCINUMAAwareTopology, Plugins, CrossArchitectureVirtualization]}}}}`,
			want:     defaulting.Cluster{NUMAAwarePCI: true, Plugins: true, CrossArchitecture: true, VGAForEFI: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tc.kubevirt), &object.Object); err != nil {
				t.Fatal(err)
			}
			object.SetName("kubevirt")
			object.SetNamespace("kubevirt")
			c := newCache()
			if c.Synced() {
				t.Error("it is filled before there was a list")
			}
			changed := c.Changed()
			if err := c.found.Replace([]any{object}, ""); err != nil {
				t.Fatal(err)
			}
			select {
			case <-changed:
			default:
				t.Error("nobody is told of the change")
			}
			if diff := cmp.Diff(tc.want, c.Cluster()); diff != "" {
				t.Errorf("cluster (-want +got):\n%s", diff)
			}
			if !c.Synced() || c.Object().Name != "kubevirt" {
				t.Errorf("synced %v, object %v", c.Synced(), c.Object())
			}
			if err := c.found.Delete(object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(defaulting.Cluster{}, c.Cluster()); diff != "" {
				t.Errorf("without KubeVirt (-want +got):\n%s", diff)
			}
		})
	}
}
