package objects

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	contract "github.com/vmstencil/stencil/api/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Reader reads the objects of VirtualMachines that are being created. If nil, no objects are created.
type Reader struct {
	// Keys returns the keys that encrypt objects.
	Keys func() Keys
	// Now returns the time.
	Now func() time.Time
}

// Rendered are the objects of a VirtualMachine as decoded JSON.
type Rendered struct {
	Objects []map[string]any
	// Sensitive are the values of sensitive parameters of the template.
	Sensitive []string
}

// Read returns the objects of a new VirtualMachine; none if it has none. The error does not contain values of them.
func (r *Reader) Read(vm map[string]any, namespace string) (Rendered, error) {
	metadata := machine.MapAt(vm, "metadata")
	annotations := machine.MapAt(metadata, "annotations")
	text := machine.StringAt(annotations, contract.AnnotationPendingObjects)
	if text == "" {
		return Rendered{}, nil
	}
	if r == nil {
		return Rendered{}, errors.New("reading the objects of the template: they are not created in this cluster")
	}
	binding := Binding{Namespace: namespace, Name: machine.StringAt(metadata, "name"), Record: machine.StringAt(annotations, contract.AnnotationRendered)}
	pending, err := Open(r.Keys(), binding, text, r.Now())
	if err != nil {
		return Rendered{}, fmt.Errorf("reading the objects of the template: %w", err)
	}
	rendered := Rendered{Objects: make([]map[string]any, len(pending.Objects)), Sensitive: pending.Sensitive}
	for i, each := range pending.Objects {
		if err := json.Unmarshal(each.Manifest, &rendered.Objects[i]); err != nil {
			return Rendered{}, fmt.Errorf("reading the objects of the template: %w", err)
		}
	}
	return rendered, nil
}
