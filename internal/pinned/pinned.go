// Package pinned is about what the defaults webhook has pinned in a VirtualMachine: the version of its machine type, and addresses. A record in an
// annotation distinguishes it from what a user has specified.
package pinned

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	contract "github.com/vmstencil/stencil/api/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Record is the content of the annotation defaults.template.kubevirt.io/applied.
type Record struct {
	Defaulter string `json:"defaulter"`
	Libvirt   string `json:"libvirt"`
	QEMU      string `json:"qemu"`
	KubeVirt  string `json:"kubevirt"`
	// Machine is the machine type, with its version if the object or the defaulter has one.
	Machine string `json:"machine,omitempty"`
	// Alias is the alias from which Machine was pinned; empty if it was not pinned from one.
	Alias string `json:"alias,omitempty"`
	// Addresses are the PCI addresses that were filled in, by list and name of the device: disks/root.
	Addresses map[string]string `json:"addresses,omitempty"`
	// Unpinned reports that all of these defaults were removed.
	Unpinned bool `json:"unpinned,omitempty"`
}

// Read returns the record in annotations, decoded into its type and as a map; both are empty without one.
func Read(annotations map[string]any) (Record, map[string]any, error) {
	text, _ := annotations[contract.AnnotationDefaultsApplied].(string)
	var read Record
	raw := map[string]any{}
	if text == "" {
		return read, raw, nil
	}
	if err := errors.Join(json.Unmarshal([]byte(text), &read), json.Unmarshal([]byte(text), &raw)); err != nil {
		return Record{}, nil, fmt.Errorf("its annotation %s cannot be read: %w", contract.AnnotationDefaultsApplied, err)
	}
	return read, raw, nil
}

// Change is a value that was removed.
type Change struct{ Field, From, To string }

// Remove removes the values of the record from spec.template.spec.domain of a VirtualMachine, and no user-specified ones: a value counts as written by
// defaulting while it equals the record. It returns what was removed.
func (r Record) Remove(domain map[string]any) []Change {
	var changes []Change
	// Users can write the record of a VirtualMachine that defaulting skips, so its values must not be copied into the spec unchecked.
	if of := machine.MapAt(domain, "machine"); r.Alias != "" && of["type"] == r.Machine && VersionOf(r.Machine, r.Alias) {
		of["type"] = r.Alias
		changes = append(changes, Change{"machine type", r.Machine, r.Alias})
	}
	for _, name := range slices.Sorted(maps.Keys(r.Addresses)) {
		if holder := holderOf(domain, name); holder != nil && holder["pciAddress"] == r.Addresses[name] {
			delete(holder, "pciAddress")
			changes = append(changes, Change{"PCI address of " + name, r.Addresses[name], "left open"})
		}
	}
	return changes
}

// families maps the aliases of machine types to the prefixes of their versions.
var families = map[string]string{"q35": "pc-q35-", "pc": "pc-i440fx-", "virt": "virt-", "s390-ccw-virtio": "s390-ccw-virtio-"}

// VersionOf reports whether a machine type is a version of an alias.
func VersionOf(machineType, alias string) bool {
	family, known := families[alias]
	return known && strings.HasPrefix(machineType, family)
}

// holderOf returns the object that holds the address of a device, such as disks/root.
func holderOf(domain map[string]any, device string) map[string]any {
	list, name, _ := strings.Cut(device, "/")
	items, _ := machine.MapAt(domain, "devices")[list].([]any)
	for _, item := range items {
		found, _ := item.(map[string]any)
		if found["name"] != name {
			continue
		}
		if list == "disks" {
			return machine.MapAt(found, "disk")
		}
		return found
	}
	return nil
}
