package render

import (
	"maps"
	"reflect"
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
		fields := fieldsOf(item)
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
	if _, itself := rest["."]; len(rest) == 0 || itself && len(rest) == 1 {
		delete(left, key)
	} else {
		left[key] = rest
	}
	return left, true
}

// applied returns stored managedFields with what an applier claims now: it may claim more than before, even if it changes nothing.
func applied(stored, now any, manager string) any {
	before, _ := stored.([]any)
	after, _ := now.([]any)
	own := func(item any) bool { return isEntry(item, manager, "Apply") }
	was, is := slices.IndexFunc(before, own), slices.IndexFunc(after, own)
	switch {
	case is < 0:
		return stored
	case was < 0:
		return slices.Concat([]any{after[is]}, before)
	case reflect.DeepEqual(fieldsOf(before[was]), fieldsOf(after[is])):
		return stored
	default:
		before = slices.Clone(before)
		before[was] = after[is]
		return before
	}
}

// fieldsOf returns the claims of an entry.
func fieldsOf(item any) map[string]any {
	entry, _ := item.(map[string]any)
	fields, _ := entry["fieldsV1"].(map[string]any)
	return fields
}

// isEntry reports whether an entry has the claims of a manager to the object itself.
func isEntry(item any, manager, operation string) bool {
	entry, _ := item.(map[string]any)
	return manager != "" && machine.StringAt(entry, "manager") == manager && machine.StringAt(entry, "operation") == operation && machine.StringAt(entry, "subresource") == ""
}

// claimed returns the fields that a manager owns through an operation, Apply or Update, as a tree with true as leaves. It returns nil if the manager
// owns none.
func claimed(managedFields any, manager, operation string) map[string]any {
	entries, _ := managedFields.([]any)
	for _, item := range entries {
		if isEntry(item, manager, operation) {
			return tree(fieldsOf(item))
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
