package render

import (
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
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
	after, err := decode(raw)
	if err != nil {
		return err
	}
	patched, _ := read(after)
	if u.stored.metadata["managedFields"] != nil && patched.says(u.stored) {
		p.set(pointer{"metadata", "managedFields"}, u.stored.metadata["managedFields"])
	}
	return nil
}

// says compares what a person can say about a VM.
func (s submitted) says(other submitted) bool {
	for _, key := range []string{"labels", "annotations", "finalizers", "ownerReferences", "generateName"} {
		if !reflect.DeepEqual(s.metadata[key], other.metadata[key]) {
			return false
		}
	}
	return reflect.DeepEqual(s.spec, other.spec)
}
