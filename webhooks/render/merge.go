package render

import (
	"maps"
	"reflect"
	"slices"

	"github.com/vmstencil/stencil/internal/mutation"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// overlay merges the user's object over a base, which is the rendered or the stored object. It adds to a patch the
// operations that turn the user's object into the result. A user-specified value takes precedence over the base. null
// counts as not specified, because typed clients send it for fields without a value.
type overlay struct {
	patch *mutation.Patch
	// lists holds the fingerprint of every list that was merged by name, as the user specified it, by its JSON Pointer.
	lists map[string]string
	// merged holds the pointers of these lists.
	merged []mutation.Pointer
}

// apply merges the map at a pointer. requested is the map in the user's object; missing fields are added from the base.
func (o *overlay) apply(at mutation.Pointer, base, requested map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(base)) {
		below := at.Child(key)
		requestedMap, isMap := requested[key].(map[string]any)
		baseMap, baseIsMap := base[key].(map[string]any)
		switch {
		case requested[key] == nil:
			if base[key] != nil {
				o.patch.Set(below, base[key])
			}
		case isMap && baseIsMap:
			o.apply(below, baseMap, requestedMap)
		default:
			o.list(below, base[key], requested[key])
		}
	}
}

func (o *overlay) list(at mutation.Pointer, base, requested any) {
	baseList, requestedList, byName := namedLists(base, requested)
	if !byName {
		return
	}
	merged := mergeNamed(baseList, requestedList)
	if reflect.DeepEqual(merged, requestedList) {
		return
	}
	o.patch.Set(at, merged)
	if o.lists == nil {
		o.lists = map[string]string{}
	}
	o.lists[at.String()] = machine.Fingerprint(requested)
	o.merged = append(o.merged, at)
}

// mergeValue merges two values that are not patched separately, because they are in a list that is replaced as a
// whole.
func mergeValue(base, requested any) any {
	if requested == nil {
		return base
	}
	if baseMap, ok := base.(map[string]any); ok {
		if requestedMap, ok := requested.(map[string]any); ok {
			merged := maps.Clone(baseMap)
			for key, value := range requestedMap {
				merged[key] = mergeValue(baseMap[key], value)
			}
			return merged
		}
	}
	if baseList, requestedList, byName := namedLists(base, requested); byName {
		return mergeNamed(baseList, requestedList)
	}
	return requested
}

// mergeNamed merges lists by name: the items of the base in their order, then the items that only the user's list
// has, in theirs.
func mergeNamed(base, requested []any) []any {
	position := make(map[string]int, len(base))
	merged := slices.Clone(base)
	for i, item := range base {
		position[nameOf(item)] = i
	}
	for _, item := range requested {
		if i, found := position[nameOf(item)]; found {
			merged[i] = mergeValue(base[i], item)
		} else {
			merged = append(merged, item)
		}
	}
	return merged
}

// namedLists reports whether two lists merge by name: neither is empty, and every item of each has a name that is
// unique in its list.
func namedLists(base, requested any) (baseList, requestedList []any, byName bool) {
	baseList, _ = base.([]any)
	requestedList, _ = requested.([]any)
	return baseList, requestedList, uniquelyNamed(baseList) && uniquelyNamed(requestedList)
}

func uniquelyNamed(list []any) bool {
	seen := make(map[string]bool, len(list))
	for _, item := range list {
		name := nameOf(item)
		if name == "" || seen[name] {
			return false
		}
		seen[name] = true
	}
	return len(list) > 0
}

func nameOf(item any) string {
	m, _ := item.(map[string]any)
	return machine.StringAt(m, "name")
}
