package ova

import (
	"fmt"
	"maps"
	"strings"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/ovf/conversion"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// sized returns a VirtualMachine with the CPUs and the memory of its instance type, which is in one of the files at paths, as its preference may be. A
// VirtualMachine without an instance type is returned as it is.
func sized(vm map[string]any, namespace string, paths []string) (map[string]any, []conversion.Note, error) {
	instancetype, problem := sizing.Instancetype(vm, namespace)
	if problem != nil {
		return nil, nil, cli.Usage(problem)
	}
	preference, problem := sizing.Preference(vm, namespace)
	if problem != nil {
		return nil, nil, cli.Usage(problem)
	}
	if instancetype == nil && len(paths) > 0 {
		return nil, nil, cli.Usage(fmt.Errorf("--instancetype-file %s: the template names no instance type", strings.Join(paths, ",")))
	}
	var notes []conversion.Note
	if preference != nil {
		notes = append(notes, conversion.Note{Action: conversion.ActionWarning, Source: preference.String(), Result: "its firmware and its devices are not part of the hardware in the descriptor; set them in the template if guests need them"})
	}
	if instancetype == nil {
		return vm, notes, nil
	}
	objects, err := (&source.Reader{}).Objects(paths)
	if err != nil {
		return nil, nil, err
	}
	size := find(objects, instancetype)
	if size == nil {
		return nil, nil, cli.Usage(fmt.Errorf("the template names the %s, whose CPUs and memory the descriptor has: "+
			"give the file with it, --instancetype-file FILE, as `kubectl get %s -o yaml` prints it", instancetype, strings.ToLower(instancetype.Kind)+" "+instancetype.Name))
	}
	preferred := find(objects, preference)
	if preference != nil && preferred == nil {
		notes = append(notes, conversion.Note{Action: conversion.ActionWarning, Source: preference.String(), Result: "no file of --instancetype-file holds it: each CPU is a socket"})
	}
	guest, _ := vm["spec"].(map[string]any)
	template, _ := guest["template"].(map[string]any)
	applied, err := sizing.Apply(template, size, preferred)
	if err != nil {
		return nil, nil, cli.Usage(fmt.Errorf("the %s: %w", instancetype, err))
	}
	vm, guest = maps.Clone(vm), maps.Clone(guest)
	vm["spec"], guest["template"] = guest, applied
	return vm, append(notes, conversion.Note{Action: conversion.ActionKept, Source: instancetype.String(), Result: "its CPUs and its memory are those of the descriptor"}), nil
}

// find returns the object that a reference refers to, and nil if there is none. An object without a namespace is in that of the reference.
func find(objects []source.Object, reference *sizing.Reference) map[string]any {
	if reference == nil {
		return nil
	}
	for i := range objects {
		o := &objects[i]
		inside := !reference.Namespaced() || o.Namespace() == "" || o.Namespace() == reference.Namespace
		if o.Kind == reference.Kind && o.Name() == reference.Name && inside {
			return o.Content
		}
	}
	return nil
}
