package render

import (
	"encoding/json"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// manifests returns the previous and the current manifest of a declarative client: the manifests that `kubectl apply`
// stores in an annotation, or the fields that an applier claims, in which lists are leaves. known is false for any
// other client.
func (u update) manifests() (before, now machine.Object, found bool) {
	claimsNow := claimed(u.object.Metadata["managedFields"], u.fieldManager, "Apply")
	claimsBefore := claimed(u.stored.Metadata["managedFields"], u.fieldManager, "Apply")
	if claimsNow != nil {
		before, _ = machine.Read(claimsBefore)
		now, _ = machine.Read(claimsNow)
		return before, now, true
	}
	before, foundBefore := lastApplied(u.stored)
	now, foundNow := lastApplied(u.object)
	return before, now, foundBefore && foundNow
}

// lastApplied returns the manifest that `kubectl apply` stores in an annotation.
func lastApplied(o machine.Object) (machine.Object, bool) {
	manifest, err := machine.Decode([]byte(machine.StringAt(o.Annotations, lastAppliedAnnotation)))
	if err != nil {
		return machine.Object{}, false
	}
	object, errs := machine.Read(manifest)
	return object, len(errs) == 0
}

// managerOf returns the field manager in the options of an update. The API server passes update options for a patch
// too, server-side apply included.
func managerOf(options []byte) string {
	var o struct {
		FieldManager string `json:"fieldManager"`
	}
	if json.Unmarshal(options, &o) != nil {
		return ""
	}
	return o.FieldManager
}
