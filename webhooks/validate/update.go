package validate

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/disks"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
	"github.com/vmstencil/stencil/webhooks/internal/rerender"
)

// evaluateUpdate evaluates the change of a stored VM by the overrides of the approvals that approve its template, and
// the disks that it changes by the pinned sources. It does not evaluate the template or the constraints on parameters
// again: a VM that was created under other rules must remain operable, and is reported by the audit. What KubeVirt's webhook adds is no change by the user. A change of mutable parameters is evaluated as the
// creation with the new values; what the template makes of them is no change by the user.
func (h *Handler) evaluateUpdate(ctx context.Context, request admission.Request, vm, stored machine.Object, approvals []*approval.Approval, rendered approval.Template) (approval.Decision, *admission.Response) {
	question := approval.Question{
		User:     request.UserInfo,
		Template: rendered,
		Touched:  h.additions.ChangesByUser(stored.Object, vm.Object),
		Update:   true,
	}
	if names := rerender.Changed(stored, vm); len(names) > 0 {
		if denial := h.mutate(ctx, request, vm, stored, names, &question); denial != nil {
			return approval.Decision{}, denial
		}
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

// mutate adds the change of mutable parameters to a question.
func (h *Handler) mutate(ctx context.Context, request admission.Request, vm, stored machine.Object, names []string, q *approval.Question) *admission.Response {
	from := stored.Record()
	found := h.templates.Wait(ctx, from.Namespace, from.Name, templateWaitTimeout)
	if found == nil {
		return ptr.To(deny.Unavailable(fmt.Sprintf("template %s/%s, from which this VM was just rendered again, no longer exists", from.Namespace, from.Name)))
	}
	compiled, err := found.Compiled()
	if err != nil || found.UID != from.UID || compiled.Digest() != from.Digest {
		return ptr.To(deny.Unavailable(fmt.Sprintf("template %s/%s has changed while this VM was rendered from it again", from.Namespace, from.Name)))
	}
	change, causes := rerender.NewChange(compiled, stored, from, rerender.Base(stored, from), names, vm.Parameters())
	if len(causes) > 0 {
		return ptr.To(deny.Invalid(request.Name, causes))
	}
	q.Touched = h.additions.ChangesByUser(change.Object(stored).Object, vm.Object)
	q.Values, q.Given, q.Name = change.Values, vm.Parameters(), vm.Name()
	q.Declared, q.Sensitive = compiled, compiled.Sensitive
	return nil
}
