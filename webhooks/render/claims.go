package render

import (
	"maps"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/internal/mutation"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// A claim is a field that a manager owns according to metadata.managedFields. The API server computes the claims of a
// request before admission, without the changes of this webhook.

// disclaim removes from the managedFields of an object the sender's claims to fields that this webhook changed. A
// later server-side apply of the same manifest by another manager then has no conflict over them. Claims of an
// applier remain: its next apply is recognised by them, and it does not conflict with itself.
func disclaim(managedFields any, changed []mutation.Pointer) (any, bool) {
	entries, _ := managedFields.([]any)
	left := make([]any, 0, len(entries))
	disclaimed := false
	for _, item := range entries {
		entry, _ := item.(map[string]any)
		fields, _ := entry["fieldsV1"].(map[string]any)
		if fields == nil || machine.StringAt(entry, "operation") != "Update" {
			left = append(left, item)
			continue
		}
		for _, at := range changed {
			var removed bool
			if fields, removed = without(fields, at); removed {
				disclaimed = true
			}
		}
		if len(fields) == 0 {
			continue
		}
		entry = maps.Clone(entry)
		entry["fieldsV1"] = fields
		left = append(left, entry)
	}
	return left, disclaimed
}

// without returns claims without the claim at a pointer, and without parents that have no other claims.
func without(fields map[string]any, at mutation.Pointer) (map[string]any, bool) {
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

// applied returns the fields that a manager owns through server-side apply, as a tree with true as leaves. It returns
// nil if the manager owns none.
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

// withoutDropped returns a stored tree without the fields that the previous manifest contained and the current one
// does not. From a list, it removes items only by name.
func withoutDropped(stored, before, now map[string]any) map[string]any {
	left := maps.Clone(stored)
	for key, previous := range before {
		value, found := stored[key]
		if !found {
			continue
		}
		previousMap, _ := previous.(map[string]any)
		valueMap, isMap := value.(map[string]any)
		valueList, isList := value.([]any)
		_, still := now[key]
		switch {
		case isMap && previousMap != nil:
			nowMap, _ := now[key].(map[string]any)
			rest := withoutDropped(valueMap, previousMap, nowMap)
			if left[key] = rest; len(rest) == 0 && len(valueMap) > 0 {
				delete(left, key)
			}
		case isList:
			if rest := withoutItems(valueList, previous, now[key]); len(rest) == 0 && !still && len(valueList) > 0 {
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

// withoutItems returns the stored list without the items that the previous manifest named and the current one does
// not. A list of items without unique names is owned by the manifest as a whole, and is removed with it.
func withoutItems(stored []any, before, now any) []any {
	beforeList, isList := before.([]any)
	nowList, _ := now.([]any)
	if !isList {
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
