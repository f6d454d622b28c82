package engine

import (
	"encoding/json"
	"fmt"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/domain"
)

// document is a VirtualMachine as decoded JSON.
type document map[string]any

// set writes a value, creates missing parents, and returns the equivalent patch operations. An
// item can be added only at the end of its list.
func (d document) set(path domain.Path, value any) ([]defaulting.PatchOperation, error) {
	var operations []defaulting.PatchOperation
	add := func(end int, value any) {
		operations = append(operations, defaulting.PatchOperation{Op: "add", Path: path[:end].Pointer(), Value: value})
	}
	var (
		parent any = map[string]any(d)
		// store replaces parent in its own parent: appending may reallocate a list.
		store = func(any) {}
	)
	for i, step := range path {
		last := i == len(path)-1
		index, isItem := domain.IsItem(step)
		if isItem {
			list, ok := parent.([]any)
			if !ok || index > len(list) {
				return nil, fmt.Errorf("there is no %s to write to", path[:i+1])
			}
			if index == len(list) {
				if !last {
					return nil, fmt.Errorf("there is no %s to write to", path[:i+1])
				}
				store(append(list, copied(value)))
				add(i+1, value)
				return operations, nil
			}
			parent, store = list[index], func(child any) { list[index] = child }
			continue
		}
		object, ok := parent.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("there is no %s to write to", path[:i+1])
		}
		if last {
			_, exists := object[step]
			object[step] = copied(value)
			add(i+1, value)
			if exists {
				operations[len(operations)-1].Op = "replace"
			}
			return operations, nil
		}
		child, ok := object[step]
		if !ok || child == nil {
			child = emptyFor(path[i+1])
			object[step] = child
			add(i+1, emptyFor(path[i+1]))
		}
		parent, store = child, func(child any) { object[step] = child }
	}
	return operations, nil
}

// claimsNetwork reports whether a network comes from a resource claim. KubeVirt 1.9 places the SR-IOV functions of such networks
// after all others, and finds them when the VM is started. The API of KubeVirt 1.8, with which test/oracle compiles this package
// as well, does not have the field.
func (d document) claimsNetwork() bool {
	at := any(map[string]any(d))
	for _, step := range domain.In("networks") {
		object, _ := at.(map[string]any)
		at = object[step]
	}
	networks, _ := at.([]any)
	for _, item := range networks {
		if network, _ := item.(map[string]any); network["resourceClaim"] != nil {
			return true
		}
	}
	return false
}

// emptyFor returns an empty parent for a step.
func emptyFor(step string) any {
	if _, ok := domain.IsItem(step); ok {
		return []any{}
	}
	return map[string]any{}
}

// copied returns a deep copy, so that later changes to the document do not change the patch.
func copied(value any) any {
	switch value := value.(type) {
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, item := range value {
			object[key] = copied(item)
		}
		return object
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = copied(item)
		}
		return list
	}
	return value
}

// plain returns a value as decoded JSON.
func plain(value any) (any, error) {
	switch value.(type) {
	case string, bool, map[string]any, []any:
		return value, nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing the default: %w", err)
	}
	var result any
	if err := json.Unmarshal(text, &result); err != nil {
		return nil, fmt.Errorf("writing the default: %w", err)
	}
	return result, nil
}
