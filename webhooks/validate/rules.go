package validate

import (
	"context"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	subresources "github.com/vmstencil/stencil/api/subresources/v1beta1"
	permission "github.com/vmstencil/stencil/internal/authorization"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/template/validations"
	"github.com/vmstencil/stencil/template/validations/vmrules"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// rules evaluates the rules of a VM and of its template. On update it excludes violations that the stored VM already
// has, because the template may have received the rules later.
func (h *Handler) rules(ctx context.Context, request admission.Request, vm machine.Object) (vmrules.Decision, *admission.Response) {
	now := h.rulesOf(ctx, vm, request.Namespace)
	decision := now.Evaluate(ctx)
	if request.Operation != admissionv1.Create && now.Has() {
		stored, denial := deny.ReadVM(request.Name, request.OldObject.Raw)
		if denial != nil {
			return vmrules.Decision{}, denial
		}
		before := now
		before.Object = stored.Object
		decision = decision.Since(before.Evaluate(ctx))
	}
	if !decision.Of(now) {
		return decision, nil
	}
	// Their text is content of the template.
	namespace, name, _ := strings.Cut(now.Template, "/")
	may, err := h.mayRender(ctx, request.UserInfo, namespace, name)
	if err != nil {
		return vmrules.Decision{}, ptr.To(deny.Unavailable(err.Error()))
	}
	if !may {
		decision = decision.Without(now)
	}
	return decision, nil
}

// mayRender reports whether a user is shown what a template renders: by verb use, or by stencil-apiserver.
func (h *Handler) mayRender(ctx context.Context, user authenticationv1.UserInfo, namespace, name string) (bool, error) {
	if may, err := h.permissions.Allowed(ctx, user, permission.Use, namespace, name); may || err != nil {
		return may, err
	}
	for _, subresource := range []string{"process", "create"} {
		may, err := h.permissions.May(ctx, user, permission.Action{
			Verb: permission.Create, Group: subresources.GroupName, Version: subresources.GroupVersion.Version, Resource: "virtualmachinetemplates", Subresource: subresource,
			Namespace: namespace, Name: name,
		})
		if may || err != nil {
			return may, err
		}
	}
	return false, nil
}

// rulesOf returns the input of the evaluation of the rules.
func (h *Handler) rulesOf(ctx context.Context, vm machine.Object, namespace string) vmrules.Case {
	c := vmrules.Case{Object: vm.Object, Namespace: namespace, Sizes: h.sizes}
	origin, found := policyinput.OriginOf(vm.Object, namespace)
	if !found {
		return c
	}
	t := h.templates.Wait(ctx, origin.Namespace, origin.Name, 0)
	if t == nil || t.UID != origin.Record.UID {
		return c // deleted; a template of this name now is a different object
	}
	c.Template, c.Rules = t.Namespace+"/"+t.Name, t.Annotation(validations.AnnotationTemplate)
	if compiled, err := t.Compiled(); err == nil {
		c.Secret = compiled.HasSensitive()
	}
	return c
}
