package approval_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/approval"
)

// stored is a VirtualMachine of ordinary size.
const stored = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web-1
  labels: {app: web, vm.kubevirt.io/template: fedora}
  annotations: {template.kubevirt.io/template-ref: golden/fedora}
spec:
  runStrategy: Always
  instancetype: {kind: VirtualMachineClusterInstancetype, name: u1.medium}
  preference: {kind: VirtualMachineClusterPreference, name: fedora}
  dataVolumeTemplates:
  - metadata: {name: web-1-root}
    spec:
      sourceRef: {kind: DataSource, name: fedora, namespace: golden}
      storage: {resources: {requests: {storage: 30Gi}}}
  template:
    metadata: {labels: {app: web}}
    spec:
      domain:
        devices:
          disks: [{name: root, disk: {bus: virtio}}, {name: init, disk: {bus: virtio}}]
          interfaces: [{name: default, masquerade: {}, model: virtio}]
          rng: {}
        firmware: {bootloader: {efi: {secureBoot: true}}, uuid: 7a3e3a0e-0d4c-5c3e-9a53-6f2c0f0d6d1a}
        machine: {type: q35}
        resources: {}
      networks: [{name: default, pod: {}}]
      terminationGracePeriodSeconds: 180
      volumes:
      - {name: root, dataVolume: {name: web-1-root}}
      - {name: init, cloudInitNoCloud: {userData: "#cloud-config"}}
`

const benchmarked = `
overrides:
- spec.runStrategy
- metadata.labels.*
- spec.template.spec.domain.devices.interfaces[name=default].macAddress
- spec.template.spec.nodeSelector
parameters:
- {name: CPU, minimum: 1, maximum: 8}
- {name: NAME, pattern: "[a-z][-a-z0-9]{0,40}"}
- {name: MEMORY, expression: "quantity(value).compareTo(quantity('16Gi')) <= 0"}
`

func BenchmarkCompile(b *testing.B) {
	o := object(b, "a", benchmarked)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := approval.Compile(o); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEvaluate(b *testing.B) {
	a := compile(b, "a", benchmarked)
	old := tree(b, stored)
	unchanged := runtime.DeepCopyJSON(old)
	changed := runtime.DeepCopyJSON(old)
	changed["spec"].(map[string]any)["runStrategy"] = "Halted"
	values := map[string]string{"CPU": "4", "NAME": "web-1", "MEMORY": "8Gi"}
	question := approval.Question{User: ada, Template: fedora, Sensitive: none}

	b.Run("an update that changes nothing", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if got := approval.Changes(old, unchanged); len(got) > 0 {
				b.Fatal(got)
			}
		}
	})
	b.Run("an update of one field", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			q := question
			q.Touched = approval.Changes(old, changed)
			if got := approval.Evaluate([]*approval.Approval{a}, q); !got.Allowed {
				b.Fatal(got)
			}
		}
	})
	b.Run("everything that was written", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if got := approval.UserSpecified(old, unchanged); len(got) == 0 {
				b.Fatal(got)
			}
		}
	})
	b.Run("a creation with three parameters", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			q := question
			q.Values = values
			if got := approval.Evaluate([]*approval.Approval{a}, q); !got.Allowed {
				b.Fatal(got)
			}
		}
	})
}
