package render

import (
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/vmstencil/stencil/machine"
)

// keepManagers puts the stored managedFields into the patch when the object, once
// patched, says nothing that is not stored. Before admission the API server took
// every field that a short manifest leaves out or writes otherwise for changed,
// and its manager's claim with it; we have put the fields back, so the claims
// come back too. With them the update is one that changes nothing, and the API
// server does not even write it.
func (u update) keepManagers(p *patch) error {
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
	patched, _ := machine.Read(after)
	if u.stored.Metadata["managedFields"] != nil && sameWords(patched, u.stored) {
		p.set(pointer{"metadata", "managedFields"}, u.stored.Metadata["managedFields"])
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
