package apiserver

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// explain renders a stored template, and returns the decisions of everything that would evaluate the VirtualMachine.
func (h *handler) explain(ctx context.Context, path map[string]string, options v1beta1.ProcessOptions) (processed, error) {
	requester, found := genericrequest.UserFrom(ctx)
	if !found {
		return processed{}, apierrors.NewInternalError(fmt.Errorf("the request has no user"))
	}
	target := options.TargetNamespace
	if target == "" {
		target = path[namespace]
	}
	if problems := validation.IsDNS1123Label(target); len(problems) > 0 {
		return processed{}, apierrors.NewInvalid(templateKind, path[name], field.ErrorList{field.Invalid(field.NewPath("targetNamespace"), target, problems[0])})
	}
	unable, err := h.unable(ctx, requester, target, path)
	if err != nil {
		return processed{}, err
	}
	return h.retryOnTemplateChange(ctx, path, func(template *templatecache.Template) (processed, error) {
		made, err := render(template, options.Parameters)
		if err != nil {
			return processed{}, err
		}
		answer, err := h.storedAnswer(ctx, template, made, options.Parameters)
		if err != nil {
			return processed{}, err
		}
		answer.warnings = machine.UnusedWarnings(made.compiled, options.Parameters)
		if unable != nil {
			answer.Decisions = unable
			return answer, nil
		}
		request, err := h.request(template, made, options.Parameters)
		if err != nil {
			return processed{}, err
		}
		answer.Decisions, err = h.options.Creator.Preview(ctx, userInfoOf(requester), target, request)
		// The webhook warns of the same.
		answer.Decisions = slices.DeleteFunc(answer.Decisions, func(d v1beta1.Decision) bool {
			return d.Decision == v1beta1.EffectWarn && slices.Contains(answer.warnings, d.Message)
		})
		return answer, err
	})
}

// unable returns the decision about a user without permission to create the VirtualMachine. It has no decisions of approvals and policies, because
// such a user cannot obtain them otherwise.
func (h *handler) unable(ctx context.Context, requester user.Info, target string, path map[string]string) ([]v1beta1.Decision, error) {
	template := path[name]
	if target != path[namespace] {
		template = "" // as for create
	}
	may, err := h.mayCreate(ctx, requester, target, template)
	if may || err != nil {
		return nil, err
	}
	if may, err = h.mayWrite(ctx, requester, target, path); may || err != nil {
		return nil, err
	}
	return []v1beta1.Decision{{
		Decision: v1beta1.EffectDeny,
		Message: fmt.Sprintf("user %q may not create VirtualMachines from template %s/%s in namespace %q, which takes verb \"create\" on %s/create of group %s there",
			requester.GetName(), path[namespace], path[name], target, templates, h.version.Group),
	}}, nil
}
