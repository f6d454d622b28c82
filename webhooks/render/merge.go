package render

import (
	"maps"
	"reflect"
	"slices"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// overlay lays what a person wrote over a base (what was rendered, or what is
// stored) and writes into a patch what has to be done to the person's object to
// become the result. A value that the person wrote wins over the base; null
// counts as not written, because typed clients send it for fields without a
// value.
type overlay struct {
	patch *patch
	// lists notes the fingerprint of every list that was merged by name, as the
	// person wrote it, by its JSON Pointer.
	lists map[string]string
	// merged are the places of these lists.
	merged []pointer
}

// apply merges at one place. The map written stands in the person's object
// already; what it lacks is added.
func (o *overlay) apply(at pointer, base, written map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(base)) {
		below := at.child(key)
		writtenMap, isMap := written[key].(map[string]any)
		baseMap, baseIsMap := base[key].(map[string]any)
		switch {
		case written[key] == nil:
			if base[key] != nil {
				o.patch.set(below, base[key])
			}
		case isMap && baseIsMap:
			o.apply(below, baseMap, writtenMap)
		default:
			o.list(below, base[key], written[key])
		}
	}
}

func (o *overlay) list(at pointer, base, written any) {
	baseList, writtenList, byName := namedLists(base, written)
	if !byName {
		return
	}
	merged := mergeNamed(baseList, writtenList)
	if reflect.DeepEqual(merged, writtenList) {
		return
	}
	o.patch.set(at, merged)
	if o.lists == nil {
		o.lists = map[string]string{}
	}
	o.lists[at.String()] = machine.Fingerprint(written)
	o.merged = append(o.merged, at)
}

// mergeValue is the merge of two values that are not in the person's object
// themselves, because they are in a list that is written as a whole.
func mergeValue(base, written any) any {
	if written == nil {
		return base
	}
	if baseMap, ok := base.(map[string]any); ok {
		if writtenMap, ok := written.(map[string]any); ok {
			merged := maps.Clone(baseMap)
			for key, value := range writtenMap {
				merged[key] = mergeValue(baseMap[key], value)
			}
			return merged
		}
	}
	if baseList, writtenList, byName := namedLists(base, written); byName {
		return mergeNamed(baseList, writtenList)
	}
	return written
}

// mergeNamed merges by name: the items of the base in their order, then those
// that only the person has, in theirs.
func mergeNamed(base, written []any) []any {
	position := make(map[string]int, len(base))
	merged := slices.Clone(base)
	for i, item := range base {
		position[nameOf(item)] = i
	}
	for _, item := range written {
		if i, found := position[nameOf(item)]; found {
			merged[i] = mergeValue(base[i], item)
		} else {
			merged = append(merged, item)
		}
	}
	return merged
}

// namedLists says whether both are lists that merge by name: neither is empty
// and every item of each has a name that no other item of it has.
func namedLists(base, written any) (baseList, writtenList []any, byName bool) {
	baseList, _ = base.([]any)
	writtenList, _ = written.([]any)
	return baseList, writtenList, uniquelyNamed(baseList) && uniquelyNamed(writtenList)
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
