package validate

import (
	"context"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/disks"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// evaluateUpdate evaluates the change of a stored VM by the overrides of the approvals that approve its template, and
// the disks that it changes by the pinned sources. It does not evaluate the template or the constraints on parameters
// again: a VM that was created under other rules must remain operable, and is reported by the audit.
func (h *Handler) evaluateUpdate(ctx context.Context, request admission.Request, vm, stored machine.Object, approvals []*approval.Approval, rendered approval.Template) (approval.Decision, *admission.Response) {
	question := approval.Question{
		User:     request.UserInfo,
		Template: rendered,
		Touched:  approval.Changes(stored.Object, vm.Object),
		Update:   true,
	}
	changed := func() []disks.Source {
		before := disks.Sources(stored.Spec, request.Namespace)
		return slices.DeleteFunc(disks.Sources(vm.Spec, request.Namespace), func(s disks.Source) bool { return slices.ContainsFunc(before, s.Same) })
	}
	var err error
	if question.Sources, err = h.pinned(ctx, approvals, question, changed); err != nil {
		return approval.Decision{}, ptr.To(deny.Unavailable(err.Error()))
	}
	return approval.Evaluate(approvals, question), nil
}
