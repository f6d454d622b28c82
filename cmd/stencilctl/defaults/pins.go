package defaults

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	contract "github.com/vmstencil/stencil/api/template"
)

// record is what the defaults webhook writes down of what it has written, as far as it
// matters here.
type record struct {
	Machine string `json:"machine"`
	// Alias is what Machine was pinned from.
	Alias string `json:"alias"`
	// Addresses are those that it wrote, by list and name of the device.
	Addresses map[string]string `json:"addresses"`
	// Unpinned says that all of that was taken out by Unpin.
	Unpinned bool `json:"unpinned"`
}

// change is something that defaulting has written and that is taken out.
type change struct {
	field, from, to string
}

// Reasons why a machine is left as it is.
var (
	errRuns    = errors.New("it runs, or is to run: stop it first")
	errNothing = errors.New("it has nothing that defaulting has written")
	errLeft    = errors.New("it is to be left alone, as its annotation " + contract.AnnotationDefaultsSkip + " says")
)

// families are the aliases of machine types, and how their versions begin.
var families = map[string]string{"q35": "pc-q35-", "pc": "pc-i440fx-", "virt": "virt-", "s390-ccw-virtio": "s390-ccw-virtio-"}

// unpin takes out of a machine what defaulting has written, and nothing that a person
// has: a value counts as written by defaulting while it is what the record says. The
// machine is to be left alone from then on. It returns what it took out.
func unpin(vm map[string]any) ([]change, error) {
	if runs(vm) {
		return nil, errRuns
	}
	annotations := object(vm, "metadata", "annotations")
	written, text, err := recordOf(annotations)
	if err != nil {
		return nil, err
	}
	domain := object(vm, "spec", "template", "spec", "domain")
	var changes []change
	if machine := object(domain, "machine"); written.Alias != "" && machine["type"] == written.Machine && written.versionOfAlias() {
		machine["type"] = written.Alias
		changes = append(changes, change{"machine type", written.Machine, written.Alias})
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

// setAside has a machine left alone until it is reopened.
func setAside(vm, written map[string]any) error {
	written["unpinned"] = true
	raw, err := json.Marshal(written)
	if err != nil {
		return fmt.Errorf("writing the record: %w", err)
	}
	metadata := object(vm, "metadata")
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[contract.AnnotationDefaultsApplied] = string(raw)
	annotations[contract.AnnotationDefaultsSkip] = "true"
	return nil
}

// reopen lets defaulting write again. It refuses a machine that somebody else than
// setAside wants left alone.
func reopen(vm map[string]any) error {
	if runs(vm) {
		return errRuns
	}
	annotations := object(vm, "metadata", "annotations")
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

// skipped says whether a machine is to be left alone.
func skipped(vm map[string]any) bool {
	return object(vm, "metadata", "annotations")[contract.AnnotationDefaultsSkip] == "true"
}

// runs says whether a machine runs, or will without anybody's doing.
func runs(vm map[string]any) bool {
	spec := object(vm, "spec")
	if object(vm, "status")["created"] == true || spec["running"] == true {
		return true
	}
	return spec["runStrategy"] == "Always" || spec["runStrategy"] == "RerunOnFailure"
}

// recordOf reads the record, also as it is written; both are empty without one.
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

// versionOfAlias says whether the machine type is a version of the alias. Anybody may
// write the record of a machine that is left alone, and what goes into the spec must
// not be whatever it says.
func (r record) versionOfAlias() bool {
	family, known := families[r.Alias]
	return known && strings.HasPrefix(r.Machine, family)
}

// holderOf is the object with the address of a device, such as disks/root.
func holderOf(domain map[string]any, device string) map[string]any {
	list, name, _ := strings.Cut(device, "/")
	items, _ := object(domain, "devices")[list].([]any)
	for _, item := range items {
		found, _ := item.(map[string]any)
		if found["name"] != name {
			continue
		}
		if list == "disks" {
			return object(found, "disk")
		}
		return found
	}
	return nil
}

// object is the object at a path, nil where there is none.
func object(of map[string]any, path ...string) map[string]any {
	for _, step := range path {
		of, _ = of[step].(map[string]any)
	}
	return of
}
