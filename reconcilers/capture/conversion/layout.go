package conversion

import (
	"github.com/vmstencil/stencil/internal/pinned"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// layoutAnnotations are annotations of spec.template in which KubeVirt freezes the ports of one VirtualMachine.
var layoutAnnotations = []string{"kubevirt.io/pci-interface-slot-count", "kubevirt.io/pci-topology-version"}

// unpin removes what was pinned for the guest of the source. A record that cannot be read counts as none: then nothing shows which values a user has
// not specified.
func unpin(metadata, template map[string]any) {
	record, _, err := pinned.Read(machine.MapAt(metadata, "annotations"))
	if err == nil {
		record.Remove(machine.MapAt(template, "spec", "domain"))
	}
	annotations := machine.MapAt(template, "metadata", "annotations")
	for _, key := range layoutAnnotations {
		delete(annotations, key)
	}
}
