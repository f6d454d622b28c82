package revision

import (
	"errors"
	"fmt"
	"slices"
)

// sizing is the part of an instance type or a preference that determines the size of a VirtualMachine, as the frozen types of a
// version read it.
type sizing struct {
	cpus, maxSockets  uint32
	dedicated, inside bool
	model             string
	// memory and maxMemory are in bytes.
	memory, maxMemory int64
	overcommit        int
	hugepages         string
	topology          string
	ratio             uint32
	across            string
}

// alphaTopologies are the topologies that v1alpha1 and v1alpha2 permit. Empty is sockets.
var alphaTopologies = []string{"", "preferCores", "preferSockets", "preferThreads"}

func (i *instancetypeV1alpha) sizing() (sizing, error) {
	if i.CPU == nil || i.Memory == nil {
		return sizing{}, errors.New("cpu and memory are required")
	}
	return sized(i.CPU, i.Memory), nil
}

func sized(cpu *cpuV1alpha, memory *memoryV1alpha) sizing {
	s := sizing{cpus: cpu.Guest, dedicated: cpu.DedicatedCPUPlacement, inside: cpu.IsolateEmulatorThread, model: cpu.Model, memory: memory.Guest.Value()}
	if memory.Hugepages != nil {
		s.hugepages = memory.Hugepages.PageSize
	}
	return s
}

func (i *instancetypeV1beta1) sizing() (sizing, error) {
	if i.CPU == nil || i.Memory == nil {
		return sizing{}, errors.New("cpu and memory are required")
	}
	s := sized(&i.CPU.cpuV1alpha, &i.Memory.memoryV1alpha)
	s.overcommit = i.Memory.OvercommitPercent
	if i.Memory.MaxGuest != nil {
		s.maxMemory = i.Memory.MaxGuest.Value()
	}
	if i.CPU.MaxSockets != nil {
		s.maxSockets = *i.CPU.MaxSockets
	}
	return s, nil
}

func (p *preferenceV1alpha1) sizing() (sizing, error) {
	var s sizing
	if p.CPU != nil {
		s.topology = p.CPU.PreferredCPUTopology
	}
	if !slices.Contains(alphaTopologies, s.topology) {
		return sizing{}, fmt.Errorf("cpu.preferredCPUTopology: %q is not known", s.topology)
	}
	return s, nil
}

func (p *preferenceV1beta1) sizing() (sizing, error) {
	s := sizing{ratio: p.PreferSpreadSocketToCoreRatio}
	if p.CPU == nil {
		return s, nil
	}
	s.topology = p.CPU.PreferredCPUTopology
	if o := p.CPU.SpreadOptions; o != nil {
		if o.Ratio != nil {
			s.ratio = *o.Ratio
		}
		if o.Across != nil {
			s.across = *o.Across
		}
	}
	return s, nil
}
