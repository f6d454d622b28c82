package validate

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/decision"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// evaluateUntemplated evaluates a VM without a template in a namespace that may be governed.
func evaluateUntemplated(request admission.Request, approvals []*approval.Approval) approval.Decision {
	return approval.Evaluate(approvals, approval.Question{User: request.UserInfo})
}

// evaluateCreate compares a new VM with the template that it refers to, and evaluates both by the approvals. It denies a
// VM that does not have the record of the current template, whatever the approvals allow.
func (h *Handler) evaluateCreate(ctx context.Context, request admission.Request, vm machine.Object, found *templatecache.Template, approvals []*approval.Approval) (approval.Decision, *admission.Response) {
	compiled, err := found.Compiled()
	if err != nil {
		return approval.Decision{}, ptr.To(deny.Unavailable(fmt.Sprintf("template %s/%s does not compile", found.Namespace, found.Name)))
	}
	if cause := recordMismatch(vm, found, compiled); cause != "" {
		return approval.Decision{}, ptr.To(decision.Deny(request, []approval.Objection{{Field: machine.AnnotationsPath.Key(contract.AnnotationRendered).String(), Message: cause}}))
	}
	if len(approvals) == 0 {
		return approval.Decision{Allowed: true}, nil
	}
	question := approval.Question{
		User: request.UserInfo,
		Template: approval.Template{
			Namespace: found.Namespace,
			Name:      found.Name,
			Labels:    found.Labels(),
			Digest:    compiled.Digest(),
		},
		Sensitive: compiled.Sensitive,
		Declared:  compiled,
		Name:      vm.Name(),
		Given:     vm.Parameters(),
		Match: func(a *approval.Approval) (map[string]string, []approval.Objection) {
			return match(compiled, vm, a)
		},
	}
	question.Sources, err = h.pinned(ctx, approvals, question, func() []disks.Source { return disks.Sources(vm.Spec, request.Namespace) })
	if err != nil {
		return approval.Decision{}, ptr.To(deny.Unavailable(err.Error()))
	}
	if question.Objects, err = h.objectsOf(request, vm, compiled, approvals, question); err != nil {
		return approval.Decision{}, ptr.To(deny.Unavailable(err.Error()))
	}
	return approval.Evaluate(approvals, question), nil
}

// objectsOf returns the objects that are created with the VM, without names if no approval limits them. What is in the
// annotation is created, so it is evaluated here and not where it is rendered.
func (h *Handler) objectsOf(request admission.Request, vm machine.Object, compiled *template.Compiled, approvals []*approval.Approval, q approval.Question) ([]approval.Object, error) {
	all := approval.ObjectsOf(q.Template, compiled)
	if approval.Exempt(approvals, q.User) || !approval.LimitsObjects(approvals) {
		return all, nil
	}
	rendered, err := h.objects.Read(vm.Object, request.Namespace)
	if err != nil {
		return nil, err
	}
	if len(rendered.Objects) != len(all) {
		return nil, fmt.Errorf("the VirtualMachine has %d pending objects, and its template %d", len(rendered.Objects), len(all))
	}
	for i := range all {
		all[i].Name = machine.StringAt(machine.MapAt(rendered.Objects[i], "metadata"), "name")
	}
	return all, nil
}

// recordMismatch returns the difference between the record of the rendering and the template, or "" if there is none.
// The render webhook has just written the record: a difference means that a later webhook changed it, or that the
// template changed in between.
func recordMismatch(vm machine.Object, found *templatecache.Template, compiled *template.Compiled) string {
	record := vm.Record()
	if record.Namespace != found.Namespace || record.Name != found.Name {
		return fmt.Sprintf("the record names template %q, the reference %s/%s: the VM was not rendered from what it refers to", record.Namespace+"/"+record.Name, found.Namespace, found.Name)
	}
	if record.UID != found.UID || record.Digest != compiled.Digest() {
		return fmt.Sprintf("template %s/%s changed while this VM was rendered from it; create the VM again", found.Namespace, found.Name)
	}
	for label, want := range record.Labels() {
		if vm.Labels[label] != want {
			return fmt.Sprintf("label %s does not name the template that the VM was rendered from", label)
		}
	}
	return ""
}

// match compares the VM with its template, except for the fields that the approval lists as overrides.
func match(compiled *template.Compiled, vm machine.Object, a *approval.Approval) (map[string]string, []approval.Objection) {
	matched, err := compiled.Match(vm.Object, template.Ignoring(a.OverridableField), template.Preferring(a.ClosedValues(compiled)))
	if err != nil {
		return nil, []approval.Objection{{Approval: a.Name(), Message: fmt.Sprintf("the VM cannot be compared with its template: %v", err)}}
	}
	var objections []approval.Objection
	for _, difference := range matched.Differences() {
		objections = append(objections, approval.Objection{
			Approval: a.Name(),
			Field:    difference.Path,
			Message:  fmt.Sprintf("the template has %s here, the VM %s, and the approval lists no override for it", difference.Want, difference.Got),
		})
	}
	return matched.Values(), objections
}
