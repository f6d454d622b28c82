package render

import (
	contract "github.com/vmstencil/stencil/api/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// copied says whether a new VM is the copy of one that was rendered, as KubeVirt's
// controller makes it when somebody restores a snapshot into a new VM or clones one: it
// is complete, and brings the record of the rendering along. Rendering it again
// would make another VM of it, or none: the template may have changed or be gone, and the
// controller uses no templates. Only the controllers that no approval judges are
// believed; a pool's VMs have an owner, and what they bring along was written by a
// person.
func copied(vm machine.Machine, namespace string) (machine.Record, bool) {
	written, templated := vm.Reference()
	if owners, _ := vm.Metadata["ownerReferences"].([]any); !templated || len(vm.Spec) == 0 || len(owners) > 0 {
		return machine.Record{}, false
	}
	ref, errs := machine.ParseReference(written, namespace)
	from := vm.Record()
	return from, len(errs) == 0 && from.Namespace == ref.Namespace && from.Name == ref.Name && from.UID != "" && from.Digest != ""
}

// keep leaves a copy as it is, but for the labels of the record, which a clone may
// have filtered out, and sensitive parameters, which nobody stores.
func keep(vm machine.Machine, from machine.Record) outcome {
	p := &patch{}
	p.metadata("labels", vm.Labels, nil, from.Labels())
	// For whom the copied VM was created says nothing about who copied it.
	discard(p, vm.Annotations, contract.AnnotationCreatedBy, contract.AnnotationBoundValues)
	forget(p, vm.Annotations, from.Sensitive)
	return outcome{patch: p}
}
