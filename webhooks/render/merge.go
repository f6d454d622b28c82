package render

import (
	"maps"
	"reflect"
	"slices"

	"github.com/vmstencil/stencil/internal/mutation"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/overrides"
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
	baseList, requestedList, byName := overrides.NamedLists(base, requested)
	if !byName {
		return
	}
	merged := overrides.MergeNamed(baseList, requestedList)
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
