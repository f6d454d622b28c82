package gen_test

import (
	"testing"

	"github.com/vmstencil/stencil/test/gen"
)

func TestTemplate(t *testing.T) {
	equal(t, gen.Template("kiosk", gen.InNamespace("golden"), gen.Declares("NAME"), gen.Declares("CORES", "{type: int, value: '2', maximum: 8}"),
		gen.Renders("${NAME}", gen.LeastSpec(), gen.DataVolumeDisk("root", "${NAME}-root", "{source: {blank: {}}, storage: {storageClassName: slow}}"))), `
apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata: {name: kiosk, namespace: golden}
spec:
  parameters:
  - {name: NAME}
  - {name: CORES, type: int, value: "2", maximum: 8}
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec:
      runStrategy: Halted
      dataVolumeTemplates:
      - metadata: {name: "${NAME}-root"}
        spec: {source: {blank: {}}, storage: {storageClassName: slow, resources: {requests: {storage: 1Gi}}}}
      template:
        spec:
          domain: {devices: {disks: [{name: root, disk: {bus: virtio}}]}}
          volumes: [{name: root, dataVolume: {name: "${NAME}-root"}}]
`)
}

func TestAVirtualMachineWithoutANameHasNoMetadata(t *testing.T) {
	equal(t, gen.Template("crate", gen.Renders("", gen.RunStrategy("Halted"))), `
apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata: {name: crate}
spec: {virtualMachine: {spec: {runStrategy: Halted}}}
`)
}
