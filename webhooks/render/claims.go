package render

import (
	"maps"
	"slices"
	"strings"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// A claim is a field that metadata.managedFields says a manager owns. The API
// server writes the claims of a request before admission, as if we had changed
// nothing.

// disclaim takes out of the managedFields of an object what its sender wrote and
// we changed, so that a later server-side apply of the same manifest, by another
// manager, meets no conflict over it. Claims of an applier stay: they are how its
// next apply is recognised, and it does not conflict with itself.
func disclaim(managedFields any, changed []pointer) (any, bool) {
	entries, _ := managedFields.([]any)
	kept := make([]any, 0, len(entries))
	gone := false
	for _, item := range entries {
		entry, _ := item.(map[string]any)
		fields, _ := entry["fieldsV1"].(map[string]any)
		if fields == nil || machine.StringAt(entry, "operation") != "Update" {
			kept = append(kept, item)
			continue
		}
		for _, at := range changed {
			var removed bool
			if fields, removed = without(fields, at); removed {
				gone = true
			}
		}
		if len(fields) == 0 {
			continue
		}
		entry = maps.Clone(entry)
		entry["fieldsV1"] = fields
		kept = append(kept, entry)
	}
	return kept, gone
}

// without returns claims without the one at a place, and without parents that
// claim nothing more.
func without(fields map[string]any, at pointer) (map[string]any, bool) {
	key := "f:" + at[0]
	below, found := fields[key].(map[string]any)
	if !found {
		return fields, false
	}
	left := maps.Clone(fields)
	if len(at) == 1 {
		delete(left, key)
		return left, true
	}
	rest, removed := without(below, at[1:])
	if !removed {
		return fields, false
	}
	if len(rest) == 0 {
		delete(left, key)
	} else {
		left[key] = rest
	}
	return left, true
}

// applied is what a manager owns through server-side apply, as a tree whose
// leaves are true; nil when it owns nothing that way.
func applied(managedFields any, manager string) map[string]any {
	entries, _ := managedFields.([]any)
	for _, item := range entries {
		entry, _ := item.(map[string]any)
		if manager != "" && machine.StringAt(entry, "manager") == manager && machine.StringAt(entry, "operation") == "Apply" && machine.StringAt(entry, "subresource") == "" {
			fields, _ := entry["fieldsV1"].(map[string]any)
			return tree(fields)
		}
	}
	return nil
}

func tree(fields map[string]any) map[string]any {
	out := make(map[string]any, len(fields))
	for key, value := range fields {
		name, isField := strings.CutPrefix(key, "f:")
		if !isField {
			continue
		}
		below, _ := value.(map[string]any)
		if nested := tree(below); len(nested) > 0 {
			out[name] = nested
		} else {
			out[name] = true
		}
	}
	return out
}

// withoutDropped returns a stored tree without what a manifest said before and
// says no more. Of a list only items that are known by name are dropped.
func withoutDropped(stored, before, now map[string]any) map[string]any {
	left := maps.Clone(stored)
	for key, said := range before {
		value, found := stored[key]
		if !found {
			continue
		}
		saidMap, _ := said.(map[string]any)
		valueMap, isMap := value.(map[string]any)
		valueList, isList := value.([]any)
		_, still := now[key]
		switch {
		case isMap && saidMap != nil:
			nowMap, _ := now[key].(map[string]any)
			rest := withoutDropped(valueMap, saidMap, nowMap)
			if left[key] = rest; len(rest) == 0 && len(valueMap) > 0 {
				delete(left, key)
			}
		case isList:
			if rest := withoutItems(valueList, said, now[key]); len(rest) == 0 && !still && len(valueList) > 0 {
				delete(left, key)
			} else {
				left[key] = rest
			}
		case !still:
			delete(left, key)
		}
	}
	return left
}

// withoutItems returns the stored list without the items that a manifest named
// before and names no more. A list whose items have no names was the manifest's as
// a whole, and goes with it.
func withoutItems(stored []any, before, now any) []any {
	beforeList, known := before.([]any)
	nowList, _ := now.([]any)
	if !known {
		return stored
	}
	if !uniquelyNamed(beforeList) || !uniquelyNamed(stored) {
		if now == nil {
			return nil
		}
		return stored
	}
	named := func(list []any, name string) bool {
		return slices.ContainsFunc(list, func(item any) bool { return nameOf(item) == name })
	}
	return slices.DeleteFunc(slices.Clone(stored), func(item any) bool {
		return named(beforeList, nameOf(item)) && !named(nowList, nameOf(item))
	})
}
