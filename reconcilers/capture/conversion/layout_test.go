package conversion_test

import (
	"strings"
	"testing"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/fixture"
	capturing "github.com/vmstencil/stencil/reconcilers/capture/conversion"
)

// TestTheLayoutOfTheSource captures a VM in which the defaults webhook has pinned values: its record lists them.
func TestTheLayoutOfTheSource(t *testing.T) {
	const record = `{"defaulter":"v1","machine":"pc-q35-7.2","alias":"q35","addresses":{"disks/root":"0000:07:00.0","interfaces/default":"0000:01:00.0"}}`
	vm := func(record, slots string) string {
		return `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web
  namespace: shop
  annotations: {defaults.template.kubevirt.io/applied: '` + record + `'}
spec:
  runStrategy: Halted
  template:
    metadata: {annotations: {kubevirt.io/pci-topology-version: v3` + slots + `, note: kept}}
    spec:
      domain:
        machine: {type: pc-q35-7.2}
        devices:
          disks:
          - {name: root, disk: {bus: virtio, pciAddress: "0000:07:00.0"}}
          - {name: data, disk: {bus: virtio, pciAddress: "0000:09:00.0"}}
          interfaces: [{name: default, masquerade: {}, pciAddress: "0000:01:00.0"}]
      networks: [{name: default, pod: {}}]
`
	}
	const slots = `, kubevirt.io/pci-interface-slot-count: "4"`
	all := []string{`"pc-q35-7.2"`, `"q35"`, "0000:07:00.0", "0000:01:00.0", "0000:09:00.0", "slot-count", "topology", "kept"}
	for name, tc := range map[string]struct {
		vm     string
		keep   bool
		retain []string
	}{
		"is left out":                           {vm(record, slots), false, []string{`"q35"`, "0000:09:00.0", "kept"}},
		"is kept on request":                    {vm(record, slots), true, []string{`"pc-q35-7.2"`, "0000:07:00.0", "0000:01:00.0", "0000:09:00.0", "slot-count", "topology", "kept"}},
		"is a user's without a record":          {vm("", slots), false, []string{`"pc-q35-7.2"`, "0000:07:00.0", "0000:01:00.0", "0000:09:00.0", "kept"}},
		"is a user's with a record of no JSON":  {vm("{", slots), false, []string{`"pc-q35-7.2"`, "0000:07:00.0", "0000:01:00.0", "0000:09:00.0", "kept"}},
		"is a user's where it was changed":      {strings.Replace(vm(record, ""), "0000:07:00.0\"}}\n", "0000:08:00.0\"}}\n", 1), false, []string{`"q35"`, "0000:09:00.0", "kept"}},
		"is not written by a record that lies":  {vm(strings.Replace(record, "q35\",\"add", "microvm\",\"add", 1), ""), false, []string{`"pc-q35-7.2"`, "0000:09:00.0", "kept"}},
		"is kept of a machine type of a family": {vm(`{"machine":"pc-q35-7.2"}`, ""), false, []string{`"pc-q35-7.2"`, "0000:07:00.0", "0000:01:00.0", "0000:09:00.0", "kept"}},
	} {
		t.Run(name, func(t *testing.T) {
			result := convert(t, tc.vm, capturing.Options{Spec: v1beta1.VirtualMachineTemplateRequestSpec{KeepLayout: tc.keep}})
			text := fixture.Render(t, compile(t, result), map[string]string{"NAME": "new"}).JSON()
			for _, part := range all {
				wanted := false
				for _, one := range tc.retain {
					wanted = wanted || one == part
				}
				if strings.Contains(string(text), part) != wanted {
					t.Errorf("%s is in the VM: %v, in %s", part, !wanted, text)
				}
			}
		})
	}
}
