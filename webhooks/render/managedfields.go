package render

import (
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/vmstencil/stencil/internal/mutation"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// restoreClaims corrects the managedFields of an object that the webhook patches. Before admission the API server
// counts every field that a short manifest omits or encodes differently as changed, and drops its manager's claim. If
// the patched object equals the stored one (see sameContent), restoreClaims restores the stored claims but those of an applier: the update then
// changes nothing else, and nothing at all if the applier sends the same manifest again. Otherwise it removes the sender's claims to fields that the
// webhook changed, see disclaim.
func (u update) restoreClaims(p *mutation.Patch, changed []mutation.Pointer) error {
	stored := u.stored.Metadata["managedFields"]
	if stored == nil {
		return nil
	}
	after, err := withPatch(u.raw, p)
	if err != nil {
		return err
	}
	claims := mutation.Pointer{"metadata", "managedFields"}
	if object, _ := machine.Read(after); sameContent(object, u.stored) {
		p.Set(claims, applied(stored, u.object.Metadata["managedFields"], u.fieldManager))
	} else if left, disclaimed := disclaim(u.object.Metadata["managedFields"], changed); disclaimed {
		p.Set(claims, left)
	}
	return nil
}

// withPatch returns an object with a patch.
func withPatch(raw []byte, p *mutation.Patch) (map[string]any, error) {
	operations, err := p.Marshal()
	if err != nil {
		return nil, err
	}
	if operations == nil {
		return machine.Decode(raw)
	}
	decoded, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		return nil, fmt.Errorf("reading our own patch: %w", err)
	}
	if raw, err = decoded.Apply(raw); err != nil {
		return nil, fmt.Errorf("applying our own patch: %w", err)
	}
	return machine.Decode(raw)
}

// sameContent reports whether the fields of two VMs that users can set are equal.
func sameContent(one, other machine.Object) bool {
	for _, key := range []string{"labels", "annotations", "finalizers", "ownerReferences", "generateName"} {
		if !reflect.DeepEqual(one.Metadata[key], other.Metadata[key]) {
			return false
		}
	}
	return reflect.DeepEqual(one.Spec, other.Spec)
}
