package render

import (
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// settleClaims sees to the managedFields of an object that we patch. Before
// admission the API server took every field that a short manifest leaves out or
// writes otherwise for changed, and its manager's claim with it. When the object,
// once patched, says nothing that is not stored, the stored claims come back: then
// the update changes nothing, and the API server does not even write it.
// Otherwise the sender's claims on what we changed go, see disclaim.
func (u update) settleClaims(p *patch, changed []pointer) error {
	stored := u.stored.Metadata["managedFields"]
	if stored == nil {
		return nil
	}
	operations, err := p.marshal()
	if err != nil {
		return err
	}
	decoded, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		return fmt.Errorf("reading our own patch: %w", err)
	}
	raw, err := decoded.Apply(u.raw)
	if err != nil {
		return fmt.Errorf("applying our own patch: %w", err)
	}
	after, err := machine.Decode(raw)
	if err != nil {
		return err
	}
	claims := pointer{"metadata", "managedFields"}
	if patched, _ := machine.Read(after); sameWords(patched, u.stored) {
		p.set(claims, stored)
	} else if left, gone := disclaim(u.object.Metadata["managedFields"], changed); gone {
		p.set(claims, left)
	}
	return nil
}

// sameWords compares what a person can say about a VM.
func sameWords(one, other machine.Machine) bool {
	for _, key := range []string{"labels", "annotations", "finalizers", "ownerReferences", "generateName"} {
		if !reflect.DeepEqual(one.Metadata[key], other.Metadata[key]) {
			return false
		}
	}
	return reflect.DeepEqual(one.Spec, other.Spec)
}
