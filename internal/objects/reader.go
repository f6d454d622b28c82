package objects

import (
	"encoding/json"
	"fmt"
	"time"

	contract "github.com/vmstencil/stencil/api/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Reader reads the objects of VirtualMachines that are being created.
type Reader struct {
	// Keys returns the keys that encrypt objects.
	Keys func() Keys
	// Now returns the time.
	Now func() time.Time
}

// Objects returns the rendered objects of a new VirtualMachine; none if it has none. The error does not contain values of them.
func (r *Reader) Objects(vm map[string]any, namespace string) ([]map[string]any, error) {
	metadata := machine.MapAt(vm, "metadata")
	annotations := machine.MapAt(metadata, "annotations")
	text := machine.StringAt(annotations, contract.AnnotationPendingObjects)
	if text == "" {
		return nil, nil
	}
	if r == nil {
		return nil, fmt.Errorf("reading the objects of the template: they are not created in this cluster")
	}
	binding := Binding{Namespace: namespace, Name: machine.StringAt(metadata, "name"), Record: machine.StringAt(annotations, contract.AnnotationRendered)}
	pending, err := Open(r.Keys(), binding, text, r.Now())
	if err != nil {
		return nil, fmt.Errorf("reading the objects of the template: %w", err)
	}
	all := make([]map[string]any, len(pending.Objects))
	for i, each := range pending.Objects {
		if err := json.Unmarshal(each.Manifest, &all[i]); err != nil {
			return nil, fmt.Errorf("reading the objects of the template: %w", err)
		}
	}
	return all, nil
}
