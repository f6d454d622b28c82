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
		kept := some(spec, "instancetype", "preference")
		only(kept, spec, "template", func(template map[string]any) any {
			kept := map[string]any{}
			only(kept, template, "metadata", func(metadata map[string]any) any { return some(metadata, "annotations") })
			only(kept, template, "spec", func(spec map[string]any) any {
				kept := some(spec, "architecture", "networks", "volumes")
				only(kept, spec, "domain", anonymous)
				if volumes, ok := spec["volumes"].([]any); ok {
					kept["volumes"] = each(volumes, withoutSource)
				}
				return kept
			})
			return kept
		})
		return kept
	})
	return result
}

// written replaces an existing UUID: no default depends on its value.
const written = "written"

// anonymous returns a domain without the values that identify the VM and its disks.
func anonymous(domain map[string]any) any {
	kept := maps.Clone(domain)
	delete(kept, "chassis")
	only(kept, domain, "firmware", func(firmware map[string]any) any {
		kept := maps.Clone(firmware)
		delete(kept, "serial")
		if uuid, ok := kept["uuid"].(string); ok && uuid != "" {
			kept["uuid"] = written
		}
		return kept
	})
	only(kept, domain, "devices", func(devices map[string]any) any {
		disks, ok := devices["disks"].([]any)
		if !ok {
			return devices
		}
		kept := maps.Clone(devices)
		kept["disks"] = each(disks, func(disk map[string]any) any {
			kept := maps.Clone(disk)
			delete(kept, "serial")
			return kept
		})
		return kept
	})
	return kept
}

// some returns the given members of an object, if present.
func some(object map[string]any, keys ...string) map[string]any {
	kept := map[string]any{}
	for _, key := range keys {
		if value, ok := object[key]; ok {
			kept[key] = value
		}
	}
	return kept
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
	kept := some(volume, "name")
	for _, claim := range []string{"dataVolume", "persistentVolumeClaim"} {
		only(kept, volume, claim, func(source map[string]any) any { return some(source, "hotpluggable") })
	}
	only(kept, volume, "memoryDump", func(map[string]any) any { return map[string]any{} })
	return kept
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
