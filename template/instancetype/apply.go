package instancetype

import (
	"encoding/json"
	"fmt"
	"maps"

	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"
)

// spreadRatio is the default number of cores per socket, or threads per core, if the preference spreads CPUs.
const spreadRatio = 2

// Apply returns the spec.template of a VirtualMachine with the CPUs and the memory that KubeVirt gives its guest:
// instancetype and preference are objects as a Resolver returns them, and preference may be nil. The template is not
// modified. If it has no memory request, Apply sets KubeVirt's default: the guest's memory, less the overcommitted
// percentage.
func Apply(template, instancetype, preference map[string]any) (map[string]any, error) {
	var size instancetypev1beta1.VirtualMachineInstancetypeSpec
	if err := read(instancetype, &size); err != nil {
		return nil, fmt.Errorf("reading the instance type: %w", err)
	}
	var preferred instancetypev1beta1.VirtualMachinePreferenceSpec
	if err := read(preference, &preferred); err != nil {
		return nil, fmt.Errorf("reading the preference: %w", err)
	}
	sized := maps.Clone(template)
	if sized == nil {
		sized = map[string]any{}
	}
	domain := inside(inside(sized, "spec"), "domain")
	cpu := inside(domain, "cpu")
	sockets, cores, threads := topology(size.CPU.Guest, &preferred)
	cpu["sockets"], cpu["cores"], cpu["threads"] = int64(sockets), int64(cores), int64(threads)
	guest := size.Memory.Guest.String()
	inside(domain, "memory")["guest"] = guest
	if requests := inside(inside(domain, "resources"), "requests"); requests["memory"] == nil {
		requested := size.Memory.Guest
		if percent := size.Memory.OvercommitPercent; percent > 0 {
			requested.Set(requested.Value() * int64(100-percent) / 100)
		}
		requests["memory"] = requested.String()
	}
	return sized, nil
}

// inside replaces the map under a key by a copy, or by an empty map if there is none, and returns it.
func inside(of map[string]any, key string) map[string]any {
	held, _ := of[key].(map[string]any)
	copied := maps.Clone(held)
	if copied == nil {
		copied = map[string]any{}
	}
	of[key] = copied
	return copied
}

func read(object map[string]any, into any) error {
	if object == nil {
		return nil
	}
	raw, err := json.Marshal(object["spec"])
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// topology returns the sockets, cores and threads that KubeVirt derives from a number of CPUs.
func topology(cpus uint32, p *instancetypev1beta1.VirtualMachinePreferenceSpec) (sockets, cores, threads uint32) {
	sockets, cores, threads = 1, 1, 1
	if cpus == 1 {
		return
	}
	preferred := instancetypev1beta1.Sockets
	if p.CPU != nil && p.CPU.PreferredCPUTopology != nil {
		preferred = *p.CPU.PreferredCPUTopology
	}
	switch preferred {
	case instancetypev1beta1.Cores, instancetypev1beta1.DeprecatedPreferCores:
		cores = cpus
	case instancetypev1beta1.Threads, instancetypev1beta1.DeprecatedPreferThreads:
		threads = cpus
	case instancetypev1beta1.Spread, instancetypev1beta1.DeprecatedPreferSpread:
		switch ratio, across := spread(p); across {
		case instancetypev1beta1.SpreadAcrossCoresThreads:
			threads, cores = ratio, cpus/ratio
		case instancetypev1beta1.SpreadAcrossSocketsCoresThreads:
			const threadsOfCore = 2
			threads, cores, sockets = threadsOfCore, ratio, cpus/threadsOfCore/ratio
		default:
			cores, sockets = ratio, cpus/ratio
		}
	default:
		sockets = cpus
	}
	return sockets, cores, threads
}

func spread(p *instancetypev1beta1.VirtualMachinePreferenceSpec) (ratio uint32, across instancetypev1beta1.SpreadAcross) {
	ratio, across = spreadRatio, instancetypev1beta1.SpreadAcrossSocketsCores
	if p.PreferSpreadSocketToCoreRatio != 0 {
		ratio = p.PreferSpreadSocketToCoreRatio
	}
	options := p.CPU.SpreadOptions
	if options == nil {
		return ratio, across
	}
	if options.Across != nil {
		across = *options.Across
	}
	if options.Ratio != nil && *options.Ratio != 0 {
		ratio = *options.Ratio
	}
	return ratio, across
}
