package render

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/decision"
)

// Approvals returns the approvals that select a namespace.
type Approvals interface {
	Synced() bool
	ApprovalsFor(namespace string) []*approval.Approval
}

// evaluate evaluates the user-specified fields and the bound values by the approvals of the namespace. Only this webhook
// can: the webhooks after it receive a VM with additions of others.
func (c creation) evaluate(compiled *template.Compiled, name string, given map[string]string, binding *template.Binding, rendered *template.Rendered) approval.Decision {
	if len(c.approvals) == 0 {
		return approval.Decision{Allowed: true}
	}
	// Rendered.Object also converts numbers, which takes several times as long.
	under, err := machine.Decode(rendered.JSON())
	if err != nil {
		panic("reading back a rendered VirtualMachine: " + err.Error())
	}
	question := c.question(compiled, name, given)
	question.Values, question.Touched = binding.Values(), approval.UserSpecified(c.object.Object, under)
	return approval.Evaluate(c.approvals, question)
}

// question returns the state that approvals evaluate before the values are bound.
func (c creation) question(compiled *template.Compiled, name string, given map[string]string) approval.Question {
	return approval.Question{
		User:      c.user,
		Template:  templateOf(c.template, compiled),
		Sensitive: compiled.Sensitive,
		Declared:  compiled,
		Name:      name,
		Given:     given,
		Labelled:  c.labelled,
	}
}

// closed returns the objections of the approvals if all of them concern closed parameters. If the values cannot be
// bound, the user receives these causes first, because a value for a required parameter does not help if no approval
// lists the parameter.
func (c creation) closed(compiled *template.Compiled, name string, given map[string]string) []approval.Objection {
	if len(c.approvals) == 0 {
		return nil
	}
	evaluated := approval.Evaluate(c.approvals, c.question(compiled, name, given))
	if !evaluated.Denied() || slices.ContainsFunc(evaluated.Objections, func(o approval.Objection) bool { return o.Reason != approval.ReasonClosedParameter }) {
		return nil
	}
	return evaluated.Objections
}

const (
	// maxNamed is the number of templates that a denial names.
	maxNamed = 10
	// maxChecked is the number of permission checks for these names.
	maxChecked = 40
)

// untemplated returns the response for a VM without a template in a namespace that may be governed. The denial names
// templates, because the user may not be aware that a template is required. The admission policy denies the VM
// without this webhook, but it runs later in the request and cannot name templates.
func (h *Handler) untemplated(ctx context.Context, request admission.Request) admission.Response {
	approvals := h.approvals.ApprovalsFor(request.Namespace)
	v := approval.Evaluate(approvals, approval.Question{User: request.UserInfo})
	if !v.Denied() {
		return decision.Response(request, v)
	}
	hint := fmt.Sprintf("name an approved template in annotation %s", contract.AnnotationTemplateRef)
	if usable := h.usable(ctx, request, approvals); len(usable) > 0 {
		hint += "; you may use: " + strings.Join(usable, ", ")
	}
	return decision.Deny(request, v.Objections, hint)
}

// labelled returns the reference of a VM that names its template by labels only, as consoles do. It returns false unless an approval that accepts the
// labels approves this template for the user: the labels of VMs from other kinds of templates are the same, and their values are the names themselves,
// never shortened ones.
func (h *Handler) labelled(ctx context.Context, request admission.Request, vm machine.Object) (reference string, found bool) {
	ref := machine.Reference{Namespace: machine.StringAt(vm.Labels, contract.LabelTemplateNamespace), Name: machine.StringAt(vm.Labels, contract.LabelTemplate)}
	if ref.Namespace == "" || ref.Name == "" || machine.MapAt(vm.Spec, "template", "spec") == nil {
		return "", false
	}
	if _, errs := machine.ParseReference(ref.String(), request.Namespace); len(errs) > 0 {
		return "", false
	}
	t := h.templates.Wait(ctx, ref.Namespace, ref.Name, 0)
	if t == nil {
		return "", false
	}
	compiled, err := t.Compiled()
	if err != nil || len(compiled.Objects()) > 0 {
		return "", false
	}
	named, approvals := templateOf(t, compiled), h.approvals.ApprovalsFor(request.Namespace)
	accepts := func(a *approval.Approval) bool { return a.Serves(request.UserInfo) && a.AcceptsLabels(named) }
	if approval.Exempt(approvals, request.UserInfo) || !slices.ContainsFunc(approvals, accepts) {
		return "", false
	}
	if !approval.Denies(approvals) {
		// Where VMs without a template are created with a warning, labels do not take a permission.
		mayUse, err := h.permissions.Allowed(ctx, request.UserInfo, permission.Use, ref.Namespace, ref.Name)
		return ref.String(), mayUse && err == nil
	}
	return ref.String(), true
}

// untemplatedUpdate evaluates the change of a VM without a template. Until the approval cache is synced, only the
// admission policy does.
func (h *Handler) untemplatedUpdate(request admission.Request, vm, stored machine.Object) admission.Response {
	if !h.approvals.Synced() || h.exempt.Exempt(request.UserInfo.Username) {
		return admission.Allowed("")
	}
	return decision.Response(request, approval.Evaluate(h.approvals.ApprovalsFor(request.Namespace), approval.Question{
		User: request.UserInfo, Touched: approval.Changes(stored.Object, vm.Object), Update: true,
	}))
}

// usable returns the names of templates that are approved for the user and that the user may use.
func (h *Handler) usable(ctx context.Context, request admission.Request, approvals []*approval.Approval) []string {
	var approved []*templatecache.Template
	for _, t := range h.templates.List() {
		if slices.ContainsFunc(approvals, func(a *approval.Approval) bool { return a.Serves(request.UserInfo) && approves(a, t) }) {
			approved = append(approved, t)
		}
	}
	slices.SortFunc(approved, func(a, b *templatecache.Template) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	var names []string
	for _, t := range approved[:min(len(approved), maxChecked)] {
		if len(names) == maxNamed {
			break
		}
		if may, err := h.permissions.Allowed(ctx, request.UserInfo, permission.Use, t.Namespace, t.Name); err == nil && may {
			names = append(names, t.Namespace+"/"+t.Name)
		}
	}
	return names
}

func approves(a *approval.Approval, t *templatecache.Template) bool {
	compiled, err := t.Compiled()
	if err != nil {
		return false
	}
	yes, _ := a.Approves(templateOf(t, compiled))
	return yes
}

// templateOf returns what approvals evaluate of a template.
func templateOf(t *templatecache.Template, compiled *template.Compiled) approval.Template {
	return approval.Template{Namespace: t.Namespace, Name: t.Name, Labels: t.Labels(), Digest: compiled.Digest()}
}
