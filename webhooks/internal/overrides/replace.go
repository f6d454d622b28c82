package overrides

import (
	"maps"
	"reflect"
	"slices"
)

// Members returns a map as a value, nil without one.
func Members(m map[string]any) any {
	if m == nil {
		return nil
	}
	return m
}

// Replace returns a value in which new values of a template replace old ones: what has changed between old and now, where the value is still the old
// one. Everything else is an override, and stays. So do scalars, and lists that are not compared by the names of their items, that pinned has.
func Replace(value, old, now, pinned any) any {
	if reflect.DeepEqual(old, now) {
		return value
	}
	valueMap, isMap := value.(map[string]any)
	oldMap, wasMap := old.(map[string]any)
	nowMap, becomesMap := now.(map[string]any)
	if isMap && wasMap && becomesMap {
		return replaceMembers(valueMap, oldMap, nowMap, pinned)
	}
	if valueList, oldList, named := NamedLists(value, old); named {
		if nowList, is := now.([]any); is && (UniquelyNamed(nowList) || len(nowList) == 0) {
			return replaceItems(valueList, oldList, nowList, pinned)
		}
	}
	if pinned == nil && reflect.DeepEqual(value, old) {
		return now
	}
	list, isList := value.([]any)
	oldList, wasList := old.([]any)
	nowList, becomesList := now.([]any)
	if isList && wasList && becomesList && len(list) == len(oldList) && len(list) == len(nowList) && pinned == nil {
		replaced := slices.Clone(list)
		for i := range list {
			replaced[i] = Replace(list[i], oldList[i], nowList[i], nil)
		}
		return replaced
	}
	return value
}

func replaceMembers(value, old, now map[string]any, pinned any) map[string]any {
	pins, _ := pinned.(map[string]any)
	replaced := maps.Clone(value)
	for _, members := range []map[string]any{old, now} {
		for key := range members {
			if changed := Replace(value[key], old[key], now[key], pins[key]); changed == nil {
				delete(replaced, key)
			} else {
				replaced[key] = changed
			}
		}
	}
	return replaced
}

func replaceItems(value, old, now []any, pinned any) []any {
	pins, _ := pinned.([]any)
	inOld, inNow, inPins := byName(old), byName(now), byName(pins)
	replaced := make([]any, 0, len(value))
	for _, item := range value {
		name := NameOf(item)
		if changed := Replace(item, inOld[name], inNow[name], inPins[name]); changed != nil {
			replaced = append(replaced, changed)
		}
	}
	inValue := byName(value)
	for _, item := range now {
		if name := NameOf(item); inValue[name] == nil && inOld[name] == nil {
			replaced = append(replaced, item)
		}
	}
	return replaced
}
