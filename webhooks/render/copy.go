package render

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/internal/mutation"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// copied reports whether a new VM is a copy of a rendered one, which KubeVirt's controller creates when a user
// restores a snapshot into a new VM or clones a VM. A copy is complete and has the record of the rendering. Rendering
// it again would produce a different VM or fail: the template may have changed or been deleted, and the controller
// may not use templates. Only the controllers that are exempt from approvals are trusted. The VMs of a pool have an
// owner and are excluded, because their content is user-specified.
func copied(vm machine.Object, namespace string) (machine.Record, bool) {
	text, templated := vm.Reference()
	if owners, _ := vm.Metadata["ownerReferences"].([]any); !templated || len(vm.Spec) == 0 || len(owners) > 0 {
		return machine.Record{}, false
	}
	ref, errs := machine.ParseReference(text, namespace)
	from := vm.Record()
	return from, len(errs) == 0 && from.Namespace == ref.Namespace && from.Name == ref.Name && from.UID != "" && from.Digest != ""
}

// copy admits a copy of a VM. It has objects of its own if possible, and shares those of the original VM otherwise.
func (h *Handler) copy(ctx context.Context, request admission.Request, vm machine.Object, from machine.Record) admission.Response {
	renewed, denial := h.renew(ctx, request, vm, from)
	switch {
	case denial != nil:
		return *denial
	case renewed != nil:
		tidyCopy(renewed.patch, vm, from)
		return answer(vm.Name(), *renewed)
	}
	// It has no objects that it could wait for.
	p := &mutation.Patch{}
	discard(p, vm.Annotations, contract.AnnotationPendingObjects)
	release(p, vm.Spec)
	tidyCopy(p, vm, from)
	return answer(vm.Name(), result{patch: p})
}

// tidyCopy adds the labels of the record, which a clone may have filtered out, and removes sensitive parameters, which are never stored.
func tidyCopy(p *mutation.Patch, vm machine.Object, from machine.Record) {
	setMetadata(p, "labels", vm.Labels, nil, from.Labels())
	// The user who created the original VM through stencil-apiserver is not the user who copied it.
	discard(p, vm.Annotations, contract.AnnotationCreatedBy, contract.AnnotationBoundValues, contract.AnnotationRenderedFor)
	forget(p, vm.Annotations, from.Sensitive)
}
