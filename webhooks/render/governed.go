package render

import (
	"context"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	permission "github.com/vmstencil/stencil/internal/authorization"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/decision"
)

// Approvals returns the approvals that select a namespace.
type Approvals interface {
	Synced() bool
	ApprovalsFor(namespace string) []*approval.Approval
}

// Policies returns the denials that policies would have about a request which is denied anyway; a policyeval.Evaluator implements it.
type Policies interface {
	Foresee(ctx context.Context, request admission.Request, object map[string]any) policyset.Decision
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

// together adds the objections of the approvals to the causes of a rejection of values, so that the user can correct all mistakes at once. Objections that
// need the rendered VM are not known. A cause about a parameter that the approvals close is left out, because no value would be accepted.
func (c creation) together(compiled *template.Compiled, name string, values, given map[string]string, rejected result) result {
	if len(c.considered) == 0 {
		return rejected
	}
	question := c.question(compiled, name, given)
	question.Values = values
	if outline, err := compiled.Outline(values); err == nil {
		if under, err := machine.Decode(outline.JSON()); err == nil {
			question.Touched = approval.UserSpecified(c.object.Object, under)
		}
	}
	evaluated := approval.Evaluate(c.considered, question)
	if !evaluated.Denied() {
		return rejected
	}
	objections := slices.Clip(evaluated.Objections)
	if slices.ContainsFunc(objections, approval.Objection.OfTemplate) {
		return result{objections: objections}
	}
	return result{objections: besides(objections, slices.DeleteFunc(slices.Clone(rejected.causes), func(cause *field.Error) bool {
		return slices.ContainsFunc(objections, func(o approval.Objection) bool {
			return o.Reason == approval.ReasonClosedParameter && c.fieldOf(o.Field, nil) == cause.Field
		})
	}))}
}

// besides returns objections with the causes of a rejection.
func besides(objections []approval.Objection, causes field.ErrorList) []approval.Objection {
	for _, cause := range causes {
		objections = append(objections, approval.Objection{Field: cause.Field, Message: cause.ErrorBody()})
	}
	return objections
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
	hints := append([]string{"name an approved template in annotation " + contract.AnnotationTemplateRef}, h.usable(ctx, request.UserInfo, approvals)...)
	return decision.Deny(request, v.Objections, hints...)
}

// disapproved returns the response to objections of approvals. If they are about the template, it names others. Otherwise it adds the denials by policies,
// so that the user can correct all mistakes at once.
func (h *Handler) disapproved(ctx context.Context, request admission.Request, user authenticationv1.UserInfo, approvals []*approval.Approval, denied result) admission.Response {
	if slices.ContainsFunc(denied.objections, approval.Objection.OfTemplate) {
		return decision.Deny(request, denied.objections, h.usable(ctx, user, approvals)...)
	}
	all := decision.Decisions{Approvals: approval.Decision{Enforcement: v1alpha1.EnforcementDeny, Objections: denied.objections}}
	asUser := request
	asUser.UserInfo = user
	if denied.draft != nil && h.policies != nil {
		if object, err := withPatch(request.Object.Raw, denied.draft); err == nil {
			all.Policies = h.policies.Foresee(ctx, asUser, object)
		}
	}
	return decision.Combine(request, all, "policies have evaluated it before KubeVirt adds its defaults")
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
		User: request.UserInfo, Touched: h.additions.ChangesByUser(stored.Object, vm.Object), Update: true,
	}))
}

// usable returns a hint with the names of templates that are approved for the user and that the user may use; none if there are none.
func (h *Handler) usable(ctx context.Context, user authenticationv1.UserInfo, approvals []*approval.Approval) []string {
	var approved []*templatecache.Template
	for _, t := range h.templates.List() {
		if slices.ContainsFunc(approvals, func(a *approval.Approval) bool { return a.Serves(user) && approves(a, t) }) {
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
		if may, err := h.permissions.Allowed(ctx, user, permission.Use, t.Namespace, t.Name); err == nil && may {
			names = append(names, t.Namespace+"/"+t.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"you may use: " + strings.Join(names, ", ")}
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
