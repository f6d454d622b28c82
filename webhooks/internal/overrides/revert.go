package overrides

import (
	"maps"
	"reflect"
	"slices"
)

// Reverter removes overrides from stored values.
type Reverter struct {
	// Tracked reports that the base is known. Without it, what a manifest drops is removed, and there is nothing in its place.
	Tracked bool
}

// RevertMap is Revert for a map that stays if it is empty.
func (r Reverter) RevertMap(stored, before, now map[string]any, base any) map[string]any {
	if before == nil || stored == nil {
		return stored
	}
	if left, is := r.members(stored, before, now, base).(map[string]any); is {
		return left
	}
	return map[string]any{}
}

// Revert returns a stored value without what the previous manifest contained and the current one does not. There is then what the base has, or
// nothing. A manifest is a decoded object, or the fields that an applier claims, in which true stands for lists and scalars. Of a list whose items
// have unique names, each item is reverted on its own; an applier that claims it claims all its items.
func (r Reverter) Revert(stored, before, now, base any) any {
	switch {
	case before == nil:
		return stored
	case stored == nil && now == nil:
		// The override was a removal, such as an empty list.
		return base
	case stored == nil:
		return nil
	}
	storedMap, isMap := stored.(map[string]any)
	beforeMap, hadMap := before.(map[string]any)
	storedList, isList := stored.([]any)
	beforeList, hadList := before.([]any)
	switch {
	case isMap && hadMap:
		return r.members(storedMap, beforeMap, now, base)
	case isList && hadList && UniquelyNamed(beforeList) && UniquelyNamed(storedList):
		return r.items(storedList, beforeList, now, base)
	case isList && before == true && !r.Tracked:
		return stored
	case now == nil:
		return base
	case isList && before == true:
		if _, unknown := base.(Unknown); unknown {
			return stored
		}
		return base
	default:
		return stored
	}
}

func (r Reverter) members(stored, before map[string]any, now, base any) any {
	nowMap, _ := now.(map[string]any)
	left := maps.Clone(stored)
	for key, previous := range before {
		if value := r.Revert(stored[key], previous, nowMap[key], memberOf(base, key)); value == nil {
			delete(left, key)
		} else {
			left[key] = value
		}
	}
	if len(left) == 0 && (len(stored) > 0 || now == nil) && base == nil {
		return nil
	}
	return left
}

func (r Reverter) items(stored, before []any, now, base any) any {
	nowList, _ := now.([]any)
	inBefore, inNow, inBase := byName(before), byName(nowList), itemsOf(base)
	left := make([]any, 0, len(stored))
	for _, item := range stored {
		name := NameOf(item)
		previous, current, under := inBefore[name], inNow[name], inBase(name)
		if previous != nil && current == nil && under == nil {
			continue
		}
		left = append(left, r.Revert(item, previous, current, under))
	}
	if len(left) == 0 && now == nil && base == nil {
		return nil
	}
	return left
}

// Restore returns what a request makes of a stored value, completed where the request removed an override: there is what the base has. What it
// removed because the sender's previous manifest contained it is reverted. Anything else that the request removed stays removed.
func (r Reverter) Restore(stored, requested, before, now, base any) any {
	if requested == nil {
		switch {
		case base == nil:
			return nil
		case before != nil:
			return r.Revert(stored, before, now, base)
		case stored == nil || reflect.DeepEqual(stored, base):
			return nil
		default:
			return base
		}
	}
	storedMap, wasMap := stored.(map[string]any)
	requestedMap, isMap := requested.(map[string]any)
	if wasMap && isMap {
		return r.restoreMembers(storedMap, requestedMap, before, now, base)
	}
	if storedList, requestedList, named := NamedLists(stored, requested); named && !reflect.DeepEqual(stored, requested) {
		inStored, inBase := byName(storedList), itemsOf(base)
		completed := slices.Clone(requestedList)
		for i, item := range requestedList {
			name := NameOf(item)
			if was := inStored[name]; was != nil {
				completed[i] = r.Restore(was, item, nil, nil, inBase(name))
			}
		}
		return completed
	}
	return requested
}

func (r Reverter) restoreMembers(stored, requested map[string]any, before, now, base any) any {
	beforeMap, _ := before.(map[string]any)
	nowMap, _ := now.(map[string]any)
	completed := maps.Clone(requested)
	keys := maps.Clone(beforeMap)
	if keys == nil {
		keys = map[string]any{}
	}
	maps.Copy(keys, stored)
	for key := range keys {
		if value := r.Restore(stored[key], requested[key], beforeMap[key], nowMap[key], memberOf(base, key)); value != nil {
			completed[key] = value
		}
	}
	return completed
}

// At returns what a base has at a place that is not in a list.
func At(base any, keys ...string) any {
	for _, key := range keys {
		base = memberOf(base, key)
	}
	return base
}

// memberOf returns what a base has below a place. Below something unknown all is.
func memberOf(base any, key string) any {
	if _, unknown := base.(Unknown); unknown {
		return base
	}
	of, _ := base.(map[string]any)
	return of[key]
}

// itemsOf is memberOf for the items of a list.
func itemsOf(base any) func(name string) any {
	list, _ := base.([]any)
	items := byName(list)
	return func(name string) any {
		if _, unknown := base.(Unknown); unknown {
			return base
		}
		return items[name]
	}
}
