package defaulting

import "maps"

// Relevant returns the part of a VirtualMachine that its defaults depend on, as decoded JSON.
// Paths do not change, so a patch for the result applies to the VirtualMachine. The removed
// parts may be secret, such as user data of cloud-init, or differ between VirtualMachines of
// one template, such as the UUID and the serial number that KubeVirt generates. Without them,
// such VirtualMachines have equal results. The result shares values with vm.
func Relevant(vm map[string]any) map[string]any {
	result := map[string]any{}
	only(result, vm, "spec", func(spec map[string]any) any {
		result := some(spec, "instancetype", "preference")
		only(result, spec, "template", func(template map[string]any) any {
			result := map[string]any{}
			only(result, template, "metadata", func(metadata map[string]any) any { return some(metadata, "annotations") })
			only(result, template, "spec", func(spec map[string]any) any {
				result := some(spec, "architecture", "networks", "volumes")
				only(result, spec, "domain", anonymous)
				if volumes, ok := spec["volumes"].([]any); ok {
					result["volumes"] = each(volumes, withoutSource)
				}
				return result
			})
			return result
		})
		return result
	})
	return result
}

// written replaces an existing UUID: no default depends on its value.
const written = "written"

// anonymous returns a domain without the values that identify the VM and its disks.
func anonymous(domain map[string]any) any {
	result := maps.Clone(domain)
	delete(result, "chassis")
	only(result, domain, "firmware", func(firmware map[string]any) any {
		result := maps.Clone(firmware)
		delete(result, "serial")
		if uuid, ok := result["uuid"].(string); ok && uuid != "" {
			result["uuid"] = written
		}
		return result
	})
	only(result, domain, "devices", func(devices map[string]any) any {
		disks, ok := devices["disks"].([]any)
		if !ok {
			return devices
		}
		result := maps.Clone(devices)
		result["disks"] = each(disks, func(disk map[string]any) any {
			result := maps.Clone(disk)
			delete(result, "serial")
			return result
		})
		return result
	})
	return result
}

// some returns the given members of an object, if present.
func some(object map[string]any, keys ...string) map[string]any {
	result := map[string]any{}
	for _, key := range keys {
		if value, ok := object[key]; ok {
			result[key] = value
		}
	}
	return result
}

// only reduces a member of an object. A member that is not an object is copied: the defaulter
// rejects it.
func only(into, object map[string]any, key string, reduce func(map[string]any) any) {
	switch value := object[key].(type) {
	case nil:
	case map[string]any:
		into[key] = reduce(value)
	default:
		into[key] = value
	}
}

// withoutSource retains the name of a volume, and whether it is hotplugged.
func withoutSource(volume map[string]any) any {
	result := some(volume, "name")
	for _, claim := range []string{"dataVolume", "persistentVolumeClaim"} {
		only(result, volume, claim, func(source map[string]any) any { return some(source, "hotpluggable") })
	}
	only(result, volume, "memoryDump", func(map[string]any) any { return map[string]any{} })
	return result
}

// each reduces the objects in a list.
func each(items []any, reduce func(map[string]any) any) []any {
	list := make([]any, len(items))
	for i, item := range items {
		if object, ok := item.(map[string]any); ok {
			item = reduce(object)
		}
		list[i] = item
	}
	return list
}
