package overrides

import (
	"maps"
	"slices"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Merge merges what a user specified over a base. Maps are merged, and lists by name; any other value replaces that of the base. null counts as not
// specified, because typed clients send it for fields without a value. The result shares values with both.
func Merge(base, requested any) any {
	if requested == nil {
		return base
	}
	if baseMap, ok := base.(map[string]any); ok {
		if requestedMap, ok := requested.(map[string]any); ok {
			merged := maps.Clone(baseMap)
			for key, value := range requestedMap {
				merged[key] = Merge(baseMap[key], value)
			}
			return merged
		}
	}
	if baseList, requestedList, byName := NamedLists(base, requested); byName {
		return MergeNamed(baseList, requestedList)
	}
	return requested
}

// MergeNamed merges lists by name: the items of the base in their order, then the items that only the user's list
// has, in theirs.
func MergeNamed(base, requested []any) []any {
	position := make(map[string]int, len(base))
	merged := slices.Clone(base)
	for i, item := range base {
		position[NameOf(item)] = i
	}
	for _, item := range requested {
		if i, found := position[NameOf(item)]; found {
			merged[i] = Merge(base[i], item)
		} else {
			merged = append(merged, item)
		}
	}
	return merged
}

// NamedLists reports whether two lists merge by name: neither is empty, and every item of each has a name that is
// unique in its list.
func NamedLists(base, requested any) (baseList, requestedList []any, byName bool) {
	baseList, _ = base.([]any)
	requestedList, _ = requested.([]any)
	return baseList, requestedList, UniquelyNamed(baseList) && UniquelyNamed(requestedList)
}

// UniquelyNamed reports whether a list is not empty, and every item has a name of its own.
func UniquelyNamed(list []any) bool {
	seen := make(map[string]bool, len(list))
	for _, item := range list {
		name := NameOf(item)
		if name == "" || seen[name] {
			return false
		}
		seen[name] = true
	}
	return len(list) > 0
}

// NameOf returns the name of an item, empty if it has none.
func NameOf(item any) string {
	m, _ := item.(map[string]any)
	return machine.StringAt(m, "name")
}

// byName returns the items of a list by their names.
func byName(list []any) map[string]any {
	items := make(map[string]any, len(list))
	for _, item := range list {
		items[NameOf(item)] = item
	}
	return items
}
