package validate

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

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
	if request.Operation == admissionv1.Create || !now.Has() {
		return now.Evaluate(ctx), nil
	}
	stored, denial := deny.ReadVM(request.Name, request.OldObject.Raw)
	if denial != nil {
		return vmrules.Decision{}, denial
	}
	before := now
	before.Object = stored.Object
	return now.Evaluate(ctx).Since(before.Evaluate(ctx)), nil
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
