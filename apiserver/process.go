package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
	answer.warnings = slices.Concat(machine.UnusedWarnings(made.compiled, options.Parameters), warned, answer.warnings)
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

// storedAnswer returns the response for a rendering of a stored template. For a user who may use the template, the VirtualMachine refers to it. The
// other objects of a template are then created with the VirtualMachine, so the response does not have them.
func (h *handler) storedAnswer(ctx context.Context, found *templatecache.Template, made rendering, parameters map[string]string) (processed, error) {
	answer := answerOf(found, made)
	requester, known := genericrequest.UserFrom(ctx)
	if !known {
		return answer, nil
	}
	may, err := h.mayUse(ctx, requester, map[string]string{namespace: found.Namespace, name: found.Name})
	if err != nil || !may {
		return answer, err
	}
	at := machine.Reference{Namespace: found.Namespace, Name: found.Name}
	referring, err := machine.Referring(answer.VirtualMachine, made.compiled, at, parameters)
	if err != nil {
		return answer, apierrors.NewInternalError(err)
	}
	if others := made.compiled.Objects(); len(others) > 0 {
		why, err := h.unreferred(made, referring, parameters)
		if err != nil {
			return answer, apierrors.NewInternalError(err)
		}
		if why != "" {
			answer.warnings = []string{machine.ObjectsLeftToUser(at.String(), why, others)}
			return answer, nil
		}
		answer.warnings, answer.Objects = []string{machine.ObjectsLeftToCluster(others)}, nil
	}
	answer.VirtualMachine = referring
	return answer, nil
}

// unreferred returns why a VirtualMachine does not refer to its template with other objects; empty if it does.
func (h *handler) unreferred(made rendering, referring []byte, parameters map[string]string) (string, error) {
	for _, kind := range made.compiled.ObjectKinds() {
		// The plural is guessed. If that fails, the user creates the objects.
		resource, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
		if !h.options.ObjectResources.Has(resource.GroupResource()) {
			return fmt.Sprintf("the cluster creates no objects of kind %s for a VirtualMachine", kind.Kind), nil
		}
	}
	untold, err := machine.Untold(referring, made.compiled, made.binding, parameters)
	if err != nil || len(untold) == 0 {
		return "", err
	}
	return fmt.Sprintf("only they have the value of %s", strings.Join(untold, ", ")), nil
}
