package defaults

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/template/virtualmachine"
)

// record is the relevant part of the record that the defaults webhook writes.
type record struct {
	MachineType string `json:"machine"`
	// Alias is the alias that MachineType replaced.
	Alias string `json:"alias"`
	// Addresses are the addresses that it wrote, by list and name of the device.
	Addresses map[string]string `json:"addresses"`
	// Unpinned means that unpin has removed all of them.
	Unpinned bool `json:"unpinned"`
}

// change is a value written by defaulting that is removed.
type change struct {
	field, from, to string
}

// Reasons why a VirtualMachine is not changed.
var (
	errRuns    = errors.New("it runs, or is to run: stop it first")
	errNothing = errors.New("it has nothing that defaulting has written")
	errLeft    = errors.New("it is excluded by its annotation " + contract.AnnotationDefaultsSkip)
)

// families maps the aliases of machine types to the prefixes of their versions.
var families = map[string]string{"q35": "pc-q35-", "pc": "pc-i440fx-", "virt": "virt-", "s390-ccw-virtio": "s390-ccw-virtio-"}

// unpin removes the values that defaulting has written, and no user-specified ones: a value
// counts as written by defaulting while it equals the record. From then on defaulting skips the
// VirtualMachine. It returns the removed values.
func unpin(vm map[string]any) ([]change, error) {
	if runs(vm) {
		return nil, errRuns
	}
	annotations := virtualmachine.MapAt(vm, "metadata", "annotations")
	written, text, err := recordOf(annotations)
	if err != nil {
		return nil, err
	}
	domain := virtualmachine.MapAt(vm, "spec", "template", "spec", "domain")
	var changes []change
	if machine := virtualmachine.MapAt(domain, "machine"); written.Alias != "" && machine["type"] == written.MachineType && written.versionOfAlias() {
		machine["type"] = written.Alias
		changes = append(changes, change{"machine type", written.MachineType, written.Alias})
	}
	for _, name := range slices.Sorted(maps.Keys(written.Addresses)) {
		if holder := holderOf(domain, name); holder != nil && holder["pciAddress"] == written.Addresses[name] {
			delete(holder, "pciAddress")
			changes = append(changes, change{"PCI address of " + name, written.Addresses[name], "left open"})
		}
	}
	if len(changes) == 0 {
		return nil, errNothing
	}
	for _, key := range []string{"machine", "alias", "addresses"} {
		delete(text, key)
	}
	return changes, setAside(vm, text)
}

// setAside makes defaulting skip a VirtualMachine until reopen is called.
func setAside(vm, written map[string]any) error {
	written["unpinned"] = true
	raw, err := json.Marshal(written)
	if err != nil {
		return fmt.Errorf("writing the record: %w", err)
	}
	metadata := virtualmachine.MapAt(vm, "metadata")
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[contract.AnnotationDefaultsApplied] = string(raw)
	annotations[contract.AnnotationDefaultsSkip] = "true"
	return nil
}

// reopen enables defaulting again. It returns an error if the skip annotation was not set by
// setAside.
func reopen(vm map[string]any) error {
	if runs(vm) {
		return errRuns
	}
	annotations := virtualmachine.MapAt(vm, "metadata", "annotations")
	written, _, err := recordOf(annotations)
	if err != nil {
		return err
	}
	if !written.Unpinned {
		return errLeft
	}
	delete(annotations, contract.AnnotationDefaultsSkip)
	return nil
}

// skipped reports whether defaulting skips a VirtualMachine.
func skipped(vm map[string]any) bool {
	return virtualmachine.MapAt(vm, "metadata", "annotations")[contract.AnnotationDefaultsSkip] == "true"
}

// runs reports whether a VM runs, or will be started without user action.
func runs(vm map[string]any) bool {
	spec := virtualmachine.MapAt(vm, "spec")
	if virtualmachine.MapAt(vm, "status")["created"] == true || spec["running"] == true {
		return true
	}
	return spec["runStrategy"] == "Always" || spec["runStrategy"] == "RerunOnFailure"
}

// recordOf returns the record, decoded into its type and as a map; both are empty without one.
func recordOf(annotations map[string]any) (record, map[string]any, error) {
	text, _ := annotations[contract.AnnotationDefaultsApplied].(string)
	var read record
	raw := map[string]any{}
	if text == "" {
		return read, raw, nil
	}
	if err := errors.Join(json.Unmarshal([]byte(text), &read), json.Unmarshal([]byte(text), &raw)); err != nil {
		return read, nil, fmt.Errorf("its annotation %s cannot be read: %w", contract.AnnotationDefaultsApplied, err)
	}
	return read, raw, nil
}

// versionOfAlias reports whether the machine type is a version of the alias. Users can write
// the record of a VirtualMachine that defaulting skips, so its values must not be copied into
// the spec unchecked.
func (r record) versionOfAlias() bool {
	family, known := families[r.Alias]
	return known && strings.HasPrefix(r.MachineType, family)
}

// holderOf returns the object that holds the address of a device, such as disks/root.
func holderOf(domain map[string]any, device string) map[string]any {
	list, name, _ := strings.Cut(device, "/")
	items, _ := virtualmachine.MapAt(domain, "devices")[list].([]any)
	for _, item := range items {
		found, _ := item.(map[string]any)
		if found["name"] != name {
			continue
		}
		if list == "disks" {
			return virtualmachine.MapAt(found, "disk")
		}
		return found
	}
	return nil
}
