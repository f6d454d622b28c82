package defaults

import (
	"encoding/json"
	"errors"
	"fmt"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/internal/pinned"
	"github.com/vmstencil/stencil/template/virtualmachine"
)

// Reasons why a VirtualMachine is not changed.
var (
	errRuns    = errors.New("it runs, or is to run: stop it first")
	errNothing = errors.New("it has nothing that defaulting has written")
	errLeft    = errors.New("it is excluded by its annotation " + contract.AnnotationDefaultsSkip)
)

// unpin removes the values that defaulting has written, and no user-specified ones: a value
// counts as written by defaulting while it equals the record. From then on defaulting skips the
// VirtualMachine. It returns the removed values.
func unpin(vm map[string]any) ([]pinned.Change, error) {
	if runs(vm) {
		return nil, errRuns
	}
	annotations := virtualmachine.MapAt(vm, "metadata", "annotations")
	written, text, err := pinned.Read(annotations)
	if err != nil {
		return nil, err
	}
	changes := written.Remove(virtualmachine.MapAt(vm, "spec", "template", "spec", "domain"))
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
	written, _, err := pinned.Read(annotations)
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
