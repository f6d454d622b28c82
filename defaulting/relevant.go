package defaulting

import "maps"

// Relevant is what the defaults of a VirtualMachine depend on: the machine, as JSON has
// it, without the rest. What is there is where it was, so a patch for the one is a patch
// for the other. The rest may be secret, as user data of cloud-init, and is what
// machines of one template differ in, such as the UUID and the serial number that
// KubeVirt gives each, so without it they are the same. The result shares values with
// the machine.
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

// written stands for a UUID that is there: nothing depends on which.
const written = "written"

// anonymous is a domain without what identifies the machine and its disks.
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

// some are those members of an object that it has.
func some(object map[string]any, keys ...string) map[string]any {
	kept := map[string]any{}
	for _, key := range keys {
		if value, ok := object[key]; ok {
			kept[key] = value
		}
	}
	return kept
}

// only has a member of an object reduced. One that is no object is kept: it is for the
// defaulter to say that it cannot be read.
func only(into, object map[string]any, key string, reduce func(map[string]any) any) {
	switch value := object[key].(type) {
	case nil:
	case map[string]any:
		into[key] = reduce(value)
	default:
		into[key] = value
	}
}

// withoutSource keeps the name of a volume, and whether it is plugged in while the guest
// runs.
func withoutSource(volume map[string]any) any {
	kept := some(volume, "name")
	for _, claim := range []string{"dataVolume", "persistentVolumeClaim"} {
		only(kept, volume, claim, func(source map[string]any) any { return some(source, "hotpluggable") })
	}
	only(kept, volume, "memoryDump", func(map[string]any) any { return map[string]any{} })
	return kept
}

// each has the objects in a list reduced.
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
