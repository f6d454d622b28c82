package openshift

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// vm returns the one VirtualMachine among the objects.
func (c *conversion) vm(objects []any) map[string]any {
	var found map[string]any
	vms := 0
	for i, item := range objects {
		object, _ := item.(map[string]any)
		if version := scalar(object["apiVersion"]); scalar(object["kind"]) == "VirtualMachine" && strings.HasPrefix(version, "kubevirt.io/") {
			vms++
			if found == nil {
				found, c.index = object, i
			}
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
	at := fmt.Sprintf("objects[%d]", c.index)
	if version := scalar(found["apiVersion"]); version != "kubevirt.io/v1" {
		c.note(at+".apiVersion", "%s becomes kubevirt.io/v1", version)
		found["apiVersion"] = "kubevirt.io/v1"
	}
	c.object(found, at, "a VirtualMachine is created in the namespace of the request")
	c.strategy(found, at)
	return found
}

// strategy replaces spec.running, which KubeVirt has deprecated, and which excludes the runStrategy that a user of the template may choose.
func (c *conversion) strategy(vm map[string]any, at string) {
	spec, _ := vm["spec"].(map[string]any)
	running, constant := spec["running"].(bool)
	if !constant || spec["runStrategy"] != nil {
		return
	}
	delete(spec, "running")
	spec["runStrategy"] = "Halted"
	if running {
		spec["runStrategy"] = "Always"
	}
	c.note(at+".spec.running", "%t becomes runStrategy: %s", running, spec["runStrategy"])
}

// object removes the fields that a template does not hold. namespaced is the reason why a
// constant namespace is dropped.
func (c *conversion) object(object map[string]any, at, namespaced string) {
	delete(object, "status")
	metadata, _ := object["metadata"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		place := at + ".metadata." + key
		switch key {
		case "name", "generateName", "labels", "annotations":
			continue
		case "namespace":
			if strings.Contains(scalar(metadata[key]), "$") {
				continue
			}
			c.lose(place, "is dropped: %s", namespaced)
		case "creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid":
		default:
			c.lose(place, "is dropped: it belongs to one object")
		}
		delete(metadata, key)
	}
}

// labels returns the labels of the Template, which override the labels of its objects. Here
// they are also set on the VirtualMachine's spec.template.
func (c *conversion) labels(written any, objects []any) map[string]string {
	labels := texts(written)
	if len(labels) == 0 {
		return nil
	}
	for i, object := range objects {
		at := fmt.Sprintf("objects[%d]", i)
		c.override(labels, object, at, "metadata", "labels")
		if i == c.index {
			c.override(labels, object, at, "spec", "template", "metadata", "labels")
		}
	}
	converted := make(map[string]string, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		converted[c.text(key, "labels", false)] = c.text(labels[key], "labels["+key+"]", false)
	}
	c.note("labels", "become objectLabels, and are put on the VirtualMachineInstance as well")
	return converted
}

// override removes the labels at a path of an object that the Template has as well.
func (c *conversion) override(labels map[string]string, object any, at string, path ...string) {
	own, _ := object.(map[string]any)
	for _, key := range path {
		own, _ = own[key].(map[string]any)
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		old, found := own[key]
		if !found {
			continue
		}
		if scalar(old) != labels[key] {
			c.note(at+"."+strings.Join(path, ".")+"["+key+"]", "%q gives way to %q, the label of the Template", scalar(old), labels[key])
		}
		delete(own, key)
	}
}
