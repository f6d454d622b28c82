package validate

import (
	"context"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/disks"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/refuse"
)

// judgeUpdate holds the change of a stored VM to the overrides of the approvals
// that approve its template, and disks that it changes to the pinned sources.
// Neither the template nor the approvals' constraints on parameters are asked again:
// a VM that was created under other rules is the audit's business and must stay
// operable.
func (h *Handler) judgeUpdate(ctx context.Context, request admission.Request, vm, stored machine.Machine, covering []*approval.Approval, rendered approval.Template) (approval.Verdict, *admission.Response) {
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
	if question.Sources, err = h.pinned(ctx, covering, question, changed); err != nil {
		return approval.Verdict{}, ptr.To(refuse.Unavailable(err.Error()))
	}
	return approval.Judge(covering, question), nil
}
