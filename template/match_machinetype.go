package template

import (
	"maps"
	"strings"
)

// machineAliases are the aliases of machine types, by the prefix of their versions.
var machineAliases = map[string]string{
	"pc-q35-":          "q35",
	"pc-i440fx-":       "pc",
	"virt-":            "virt",
	"s390-ccw-virtio-": "s390-ccw-virtio",
}

// unpinned returns a VirtualMachine with the alias of its machine type instead of the version, and nil if it has none.
func unpinned(vm map[string]any) map[string]any {
	const last = "type"
	path := []string{"spec", "template", "spec", "domain", "machine"}
	object := vm
	for _, step := range path {
		object, _ = object[step].(map[string]any)
	}
	version, _ := object[last].(string)
	for prefix, alias := range machineAliases {
		if !strings.HasPrefix(version, prefix) {
			continue
		}
		result, machine := copiedAlong(vm, path)
		machine[last] = alias
		return result
	}
	return nil
}

// copiedAlong returns a copy of an object that can be changed at a path, and the copy of what is there. The path must exist.
func copiedAlong(object map[string]any, path []string) (result, last map[string]any) {
	result = maps.Clone(object)
	last = result
	for _, step := range path {
		child := maps.Clone(last[step].(map[string]any))
		last[step], last = child, child
	}
	return result, last
}

// closer reports whether a comparison explains a VirtualMachine better than another one: with fewer differences, or with
// more parameters at their defaults.
func (m *matcher) closer(other *matcher) bool {
	if len(m.differences) != len(other.differences) {
		return len(m.differences) < len(other.differences)
	}
	return m.atDefault() > other.atDefault()
}

func (m *matcher) atDefault() int {
	count := 0
	for i := range m.values {
		if m.origin[i] >= 0 && m.bound[i] && m.values[i] == m.compiled.parameters[i].Value {
			count++
		}
	}
	return count
}
