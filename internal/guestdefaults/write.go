package guestdefaults

import (
	"errors"
	"strings"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/internal/mutation"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Write adds the defaults of a response to the patch of a VirtualMachine, and the annotations that record them. stored is the
// VirtualMachine before an update, and the zero Object on creation. The warning is for the user; it is empty if libvirt
// accepts the VM.
func Write(p *mutation.Patch, vm, stored machine.Object, response *defaulting.Response) (warning string, err error) {
	text := machine.StringAt(stored.Annotations, contract.AnnotationDefaultsApplied)
	if before := recorded(text); len(response.Set) > 0 || text == "" || before.Unpinned {
		if stored.Object == nil {
			// The webhook may be called again with its own result. A user who forges the annotation makes a user-specified
			// value appear as a default, which stencilctl would then remove.
			before = recorded(machine.StringAt(vm.Annotations, contract.AnnotationDefaultsApplied))
		}
		if text, err = record(before, vm.Object, response); err != nil {
			return "", err
		}
	}
	p.Operations = append(p.Operations, response.Patch...)
	why := rejection(response)
	Stamp(vm, p, text, why)
	if why != "" {
		warning = "not all defaults that the guest sees were filled in: " + why + "; the VM gets the others when it is started, as without Stencil"
	}
	return warning, nil
}

// rejection returns why libvirt rejects the VM, such as one of an architecture that is foreign to the defaulter; empty if it does not. Other reasons
// for defaults that are left open are those of the cluster, about which there is an event, or of the VM itself.
func rejection(response *defaulting.Response) string {
	for _, skipped := range response.Skipped {
		if strings.HasPrefix(skipped.Reason, defaulting.RejectedByLibvirt) {
			return skipped.Reason
		}
	}
	return ""
}

// Reason describes an error of Request to a user.
func Reason(err error) string {
	var problem *defaulting.Problem
	if errors.As(err, &problem) {
		return problem.Error()
	}
	return "the defaulter does not answer"
}
