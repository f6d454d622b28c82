package typing

import "strings"

// buses of disks. Which of them a kind of disk can have is not distinguished.
var buses = []string{"virtio", "sata", "scsi", "usb"}

// closed are fields with a closed set of values. Those of KubeVirt are the constants of its API (kubevirt.io/api/core/v1), which virt-api
// validates.
var closed = map[string][]string{
	"input.request.operation": {"CREATE", "UPDATE", "DELETE"},

	"OBJECT.spec.runStrategy":                                      {"Always", "Halted", "Manual", "Once", "RerunOnFailure", "WaitAsReceiver"},
	"OBJECT.spec.template.spec.evictionStrategy":                   {"None", "LiveMigrate", "LiveMigrateIfPossible", "External"},
	"OBJECT.spec.template.spec.domain.ioThreadsPolicy":             {"shared", "auto", "supplementalPool"},
	"OBJECT.spec.template.spec.domain.devices.disks.*.disk.bus":    buses,
	"OBJECT.spec.template.spec.domain.devices.disks.*.cdrom.bus":   buses,
	"OBJECT.spec.template.spec.domain.devices.disks.*.lun.bus":     buses,
	"OBJECT.spec.template.spec.domain.devices.disks.*.cache":       {"none", "writethrough", "writeback"},
	"OBJECT.spec.template.spec.domain.devices.disks.*.io":          {"native", "threads"},
	"OBJECT.spec.template.spec.domain.devices.disks.*.errorPolicy": {"stop", "ignore", "report", "enospace"},
	"OBJECT.spec.template.spec.domain.devices.interfaces.*.model":  {"virtio", "e1000", "e1000e", "igb", "ne2k_pci", "pcnet", "rtl8139"},
	"OBJECT.spec.template.spec.domain.devices.interfaces.*.state":  {"up", "down", "absent"},
	"OBJECT.spec.template.spec.domain.cpu.features.*.policy":       {"force", "require", "optional", "disable", "forbid"},
}

// closedValues returns the values that a field can have; nil if it may have any.
func (c *checker) closedValues(field string) []string {
	switch field {
	case "input.request.kind", "input.object.kind", "input.oldObject.kind":
		return c.Kinds
	}
	for _, object := range []string{"input.object.", "input.oldObject."} {
		if rest, ok := strings.CutPrefix(field, object); ok {
			if len(c.Kinds) == 1 && c.Kinds[0] == "VirtualMachine" {
				return closed["OBJECT."+rest]
			}
			return nil
		}
	}
	return closed[field]
}
