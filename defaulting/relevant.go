package defaulting

// Relevant is what the defaults of a VirtualMachine depend on: the machine, as JSON has
// it, without the rest. What is there is where it was, so a patch for the one is a patch
// for the other. The rest may be secret, as user data of cloud-init, and is what
// machines of one template differ in, so without it they are the same. The result
// shares its values with the machine.
func Relevant(vm map[string]any) map[string]any {
	result := map[string]any{}
	only(result, vm, "spec", func(spec map[string]any) any {
		kept := some(spec, "instancetype", "preference")
		only(kept, spec, "template", func(template map[string]any) any {
			kept := map[string]any{}
			only(kept, template, "metadata", func(metadata map[string]any) any { return some(metadata, "annotations") })
			only(kept, template, "spec", func(spec map[string]any) any {
				kept := some(spec, "architecture", "domain", "networks", "volumes")
				if volumes, ok := spec["volumes"].([]any); ok {
					kept["volumes"] = withoutSources(volumes)
				}
				return kept
			})
			return kept
		})
		return kept
	})
	return result
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

// withoutSources keeps the names of volumes, and whether they are plugged in while the
// guest runs.
func withoutSources(volumes []any) []any {
	list := make([]any, len(volumes))
	for i, item := range volumes {
		volume, ok := item.(map[string]any)
		if !ok {
			list[i] = item
			continue
		}
		kept := some(volume, "name")
		for _, claim := range []string{"dataVolume", "persistentVolumeClaim"} {
			only(kept, volume, claim, func(source map[string]any) any { return some(source, "hotpluggable") })
		}
		only(kept, volume, "memoryDump", func(map[string]any) any { return map[string]any{} })
		list[i] = kept
	}
	return list
}
