package apiserver

import (
	"cmp"
	"context"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	"github.com/vmstencil/stencil/apiserver/body"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// templateWaitTimeout is how long a request waits for a template that is not in the cache: it may have been created a moment ago.
const templateWaitTimeout = 300 * time.Millisecond

// rendering is a template with its bound values, and the result.
type rendering struct {
	compiled *template.Compiled
	binding  *template.Binding
	rendered *template.Rendered
}

func render(found *templatecache.Template, parameters map[string]string) (rendering, error) {
	var r rendering
	var err error
	if r.compiled, err = found.Compiled(); err != nil {
		return r, statusOf(found.Name, err)
	}
	if r.binding, err = r.compiled.Bind(parameters); err != nil {
		return r, statusOf(found.Name, err)
	}
	if r.rendered, err = r.compiled.Render(r.binding); err != nil {
		return r, statusOf(found.Name, err)
	}
	return r, nil
}

// find returns a template from the cache.
func (h *handler) find(ctx context.Context, namespace, name string) (*templatecache.Template, error) {
	if found := h.options.Templates.Wait(ctx, namespace, name, templateWaitTimeout); found != nil {
		return found, nil
	}
	if !h.options.Templates.Synced() {
		return nil, apierrors.NewServiceUnavailable("the template cache is not synced; try again in a moment")
	}
	return nil, apierrors.NewNotFound(templateResource, name)
}

// optionsOf reads the body of a request, and warns of its fields that have no effect.
func optionsOf(ctx context.Context, path map[string]string, raw []byte) (v1beta1.ProcessOptions, error) {
	options, warnings, err := body.Options(raw)
	if err != nil {
		return options, statusOf(path[name], err)
	}
	for _, text := range warnings {
		warning.AddWarning(ctx, "", text)
	}
	return options, nil
}

// process renders a stored template. It is always a dry run.
func (h *handler) process(request *http.Request, path map[string]string, raw []byte) (processed, error) {
	ctx := request.Context()
	options, err := optionsOf(ctx, path, raw)
	if err != nil {
		return processed{}, err
	}
	if options.Explain {
		return h.explain(ctx, path, options)
	}
	found, err := h.find(ctx, path[namespace], path[name])
	if err != nil {
		return processed{}, err
	}
	made, err := render(found, options.Parameters)
	if err != nil {
		return processed{}, err
	}
	warned, err := h.evaluateRules(ctx, found, made, cmp.Or(options.TargetNamespace, found.Namespace))
	if err != nil {
		return processed{}, err
	}
	answer, err := h.storedAnswer(ctx, found, made, options.Parameters)
	if err != nil {
		return processed{}, err
	}
	answer.warnings = append(machine.UnusedWarnings(made.compiled, options.Parameters), warned...)
	return answer, nil
}

// answerOf returns the response for a rendering.
func answerOf(found *templatecache.Template, made rendering) processed {
	return processed{
		TemplateRef:    corev1.ObjectReference{Namespace: found.Namespace, Name: found.Name},
		VirtualMachine: made.rendered.JSON(),
		Objects:        made.rendered.Objects(),
		Message:        made.rendered.Message(),
		code:           http.StatusOK,
	}
}

// storedAnswer returns the response for a rendering of a stored template. For a user who may use the template, the VirtualMachine refers to it. A
// template with other objects is an exception: with a reference, the cluster would create them itself, with other values.
func (h *handler) storedAnswer(ctx context.Context, found *templatecache.Template, made rendering, parameters map[string]string) (processed, error) {
	answer := answerOf(found, made)
	requester, known := genericrequest.UserFrom(ctx)
	if !known || len(made.compiled.Objects()) > 0 {
		return answer, nil
	}
	may, err := h.mayUse(ctx, requester, map[string]string{namespace: found.Namespace, name: found.Name})
	if err != nil || !may {
		return answer, err
	}
	answer.VirtualMachine, err = referring(found, made, parameters)
	return answer, err
}
