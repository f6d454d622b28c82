package domain

import (
	"fmt"

	"github.com/vmstencil/stencil/defaulting"
)

// Set is a field that was filled.
type Set struct {
	Path   Path
	Value  any
	Source defaulting.Source
}

// notes records the fields that Prepare fills.
type notes struct{ sets []Set }

// add records a field. A field without a row in the table is a programming error.
func (n *notes) add(path Path, value any, source defaulting.Source) {
	if _, ok := rows[path.row()]; !ok {
		panic(fmt.Sprintf("domain: %s is filled but has no row in the table of fields", path.row()))
	}
	n.sets = append(n.sets, Set{Path: path, Value: value, Source: source})
}

// fill sets an empty field and records it.
func fill[T comparable](n *notes, field *T, value T, source defaulting.Source, path Path) {
	var zero T
	if *field != zero || value == zero {
		return
	}
	*field = value
	n.add(path, value, source)
}

// fillPointer does the same for an optional field, where zero is a valid value.
func fillPointer[T any](n *notes, field **T, value *T, source defaulting.Source, path Path) {
	if *field != nil || value == nil {
		return
	}
	copied := *value
	*field = &copied
	n.add(path, copied, source)
}

// Allowed reports whether a policy permits writing the default of a field.
func Allowed(path Path, policy defaulting.Policy) bool {
	on := func(value *bool) bool { return value == nil || *value }
	switch rows[path.row()].Persisted {
	case Always:
		return true
	case ByMachineType:
		return policy.MachineType != defaulting.MachineTypeKeep
	case ByPCIAddress:
		return on(policy.PCIAddress)
	case ByFirmwareUUID:
		return on(policy.FirmwareUUID)
	case ByMAC:
		return policy.MAC == defaulting.MACGenerate
	case ByCPU:
		return on(policy.CPU)
	case ByMemory:
		return on(policy.Memory)
	}
	return false
}
