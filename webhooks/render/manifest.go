package render

import (
	"encoding/json"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// manifests returns what a declarative client said before and says now, as far as
// that can be known: the manifests that `kubectl apply` keeps in an annotation, or
// the fields that an applier claims, in which lists are leaves. known is false for
// any other client.
func (u update) manifests() (before, now machine.Machine, known bool) {
	claimsNow := applied(u.object.Metadata["managedFields"], u.fieldManager)
	claimsBefore := applied(u.stored.Metadata["managedFields"], u.fieldManager)
	if claimsNow != nil {
		before, _ = machine.Read(claimsBefore)
		now, _ = machine.Read(claimsNow)
		return before, now, true
	}
	before, keptBefore := lastApplied(u.stored)
	now, keptNow := lastApplied(u.object)
	return before, now, keptBefore && keptNow
}

// lastApplied is the manifest that `kubectl apply` keeps.
func lastApplied(o machine.Machine) (machine.Machine, bool) {
	manifest, err := machine.Decode([]byte(machine.StringAt(o.Annotations, lastAppliedAnnotation)))
	if err != nil {
		return machine.Machine{}, false
	}
	kept, errs := machine.Read(manifest)
	return kept, len(errs) == 0
}

// managerOf reads the field manager out of the options of an update. The API
// server gives a patch, server-side apply among them, the options of an update
// too.
func managerOf(options []byte) string {
	var o struct {
		FieldManager string `json:"fieldManager"`
	}
	if json.Unmarshal(options, &o) != nil {
		return ""
	}
	return o.FieldManager
}
