package instancetype

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Size is the size of a guest.
type Size struct {
	// CPUs is the number of virtual CPUs, Memory the memory in bytes.
	CPUs, Memory int64
}

// Instance returns the size of the guests of an instance type, an object as a Resolver returns it. Preferences only distribute the CPUs.
func Instance(instancetype map[string]any) (Size, error) {
	var spec instancetypev1beta1.VirtualMachineInstancetypeSpec
	if err := read(instancetype, &spec); err != nil {
		return Size{}, fmt.Errorf("reading the instance type: %w", err)
	}
	return Size{CPUs: int64(spec.CPU.Guest), Memory: spec.Memory.Guest.Value()}, nil
}

// Guest returns the size of a guest without an instance type, as KubeVirt determines it of the spec.template.spec of a VirtualMachine. A guest without
// memory has 0 bytes.
func Guest(guest map[string]any) (Size, error) {
	sockets, cores, threads := Topology(guest)
	memory, err := Memory(guest)
	switch {
	case err != nil:
		return Size{}, err
	case memory == nil:
		memory = &resource.Quantity{}
	}
	return Size{CPUs: sockets * cores * threads, Memory: memory.Value()}, nil
}

// Topology returns the number of sockets, of cores in each, and of threads in each core of a guest. The default is one of each; if the guest specifies
// none, the CPUs of its pod are the number of sockets.
func Topology(guest map[string]any) (sockets, cores, threads int64) {
	requested, specified := machine.MapAt(guest, "domain", "cpu"), false
	count := func(key string) int64 {
		if n, err := strconv.ParseInt(fmt.Sprint(requested[key]), 10, 64); err == nil && n > 0 {
			specified = true
			return n
		}
		return 1
	}
	sockets, cores, threads = count("sockets"), count("cores"), count("threads")
	resources := machine.MapAt(guest, "domain", "resources")
	if of := first(machine.MapAt(resources, "limits")["cpu"], machine.MapAt(resources, "requests")["cpu"]); of != nil && !specified {
		if quantity, err := resource.ParseQuantity(fmt.Sprint(of)); err == nil {
			sockets = quantity.Value()
		}
	}
	return sockets, cores, threads
}

// Memory returns the memory of a guest, nil if it has none. The default is what its pod requests, then the limit of its pod.
func Memory(guest map[string]any) (*resource.Quantity, error) {
	resources := machine.MapAt(guest, "domain", "resources")
	requested := first(machine.MapAt(guest, "domain", "memory")["guest"], machine.MapAt(resources, "requests")["memory"], machine.MapAt(resources, "limits")["memory"])
	if requested == nil {
		return nil, nil
	}
	quantity, err := resource.ParseQuantity(fmt.Sprint(requested))
	if err != nil {
		return nil, fmt.Errorf("reading the memory %v: %w", requested, err)
	}
	return &quantity, nil
}

// first returns the first value that is not nil.
func first(values ...any) any {
	for _, value := range values {
		if value != nil {
			return value
		}
	}
	return nil
}
