package openshift

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// vm returns the one VirtualMachine among the objects. Any other object is rejected,
// because it would be lost.
func (c *conversion) vm(written any) map[string]any {
	objects, _ := written.([]any)
	var found map[string]any
	var others []int
	vms := 0
	for i, item := range objects {
		object, _ := item.(map[string]any)
		if version := scalar(object["apiVersion"]); scalar(object["kind"]) == "VirtualMachine" && strings.HasPrefix(version, "kubevirt.io/") {
			vms++
			if found == nil {
				found, c.index = object, i
			}
		} else {
			others = append(others, i)
		}
	}
	switch {
	case vms == 0:
		c.reject("objects", "there is no VirtualMachine among them")
		return nil
	case vms > 1:
		c.reject("objects", "there are %d VirtualMachines among them, and a VirtualMachineTemplate holds one: make a Template of each", vms)
		return nil
	}
	for _, i := range others {
		c.reject(fmt.Sprintf("objects[%d]", i), "%s would be lost: a VirtualMachineTemplate holds a VirtualMachine and nothing else", named(objects[i]))
	}
	c.vmObject(found, fmt.Sprintf("objects[%d]", c.index))
	return found
}

// named returns the kind and name of an object for messages.
func named(item any) string {
	object, _ := item.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	kind := scalar(object["kind"])
	if kind == "" {
		kind = "an object without a kind"
	}
	return strings.TrimSpace(kind + " " + scalar(metadata["name"]))
}

// vmObject removes the fields that a template does not hold.
func (c *conversion) vmObject(vm map[string]any, at string) {
	if version := scalar(vm["apiVersion"]); version != "kubevirt.io/v1" {
		c.note(at+".apiVersion", "%s becomes kubevirt.io/v1", version)
		vm["apiVersion"] = "kubevirt.io/v1"
	}
	delete(vm, "status")
	metadata, _ := vm["metadata"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		place := at + ".metadata." + key
		switch key {
		case "name", "generateName", "labels", "annotations":
			continue
		case "namespace":
			if strings.Contains(scalar(metadata[key]), "$") {
				continue
			}
			c.lose(place, "is dropped: a VirtualMachine is created in the namespace of the request")
		case "creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid":
		default:
			c.lose(place, "is dropped: it belongs to one object")
		}
		delete(metadata, key)
	}
}

// labels returns the labels of the Template, which override the labels of its objects. Here
// they are also set on the VirtualMachine's spec.template.
func (c *conversion) labels(written any, vm map[string]any) map[string]string {
	labels := texts(written)
	if len(labels) == 0 {
		return nil
	}
	at := fmt.Sprintf("objects[%d]", c.index)
	for _, path := range [][]string{{"metadata", "labels"}, {"spec", "template", "metadata", "labels"}} {
		object := vm
		for _, key := range path {
			object, _ = object[key].(map[string]any)
		}
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			old, found := object[key]
			if !found {
				continue
			}
			if scalar(old) != labels[key] {
				c.note(at+"."+strings.Join(path, ".")+"["+key+"]", "%q gives way to %q, the label of the Template", scalar(old), labels[key])
			}
			delete(object, key)
		}
	}
	converted := make(map[string]string, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		converted[c.text(key, "labels", false)] = c.text(labels[key], "labels["+key+"]", false)
	}
	c.note("labels", "become objectLabels, and are put on the VirtualMachineInstance as well")
	return converted
}
