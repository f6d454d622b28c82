package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	contract "github.com/vmstencil/stencil/api/template"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/delegation"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

const (
	// attempts is how many times a VirtualMachine is rendered when its template changes meanwhile.
	attempts = 5
	// pause is how long to wait for the watch to deliver the change.
	pause = 100 * time.Millisecond
)

// create renders a stored template and creates the VirtualMachine for the user.
func (h *handler) create(request *http.Request, path map[string]string, raw []byte) (processed, error) {
	ctx := request.Context()
	options, err := optionsOf(ctx, path, raw)
	if err != nil {
		return processed{}, err
	}
	requester, found := genericrequest.UserFrom(ctx)
	if !found {
		return processed{}, apierrors.NewInternalError(fmt.Errorf("the request has no user"))
	}
	target, err := h.target(ctx, requester, path, options)
	if err != nil {
		return processed{}, err
	}
	return h.retryOnTemplateChange(ctx, path, func(template *templatecache.Template) (processed, error) {
		return h.createFrom(ctx, template, requester, target, options, request.URL.Query()["dryRun"])
	})
}

// retryOnTemplateChange finds the template and calls do with it, and repeats that when the template changes meanwhile.
func (h *handler) retryOnTemplateChange(ctx context.Context, path map[string]string, do func(*templatecache.Template) (processed, error)) (processed, error) {
	for attempt := 1; ; attempt++ {
		template, err := h.find(ctx, path[namespace], path[name])
		if err != nil {
			return processed{}, err
		}
		done, err := do(template)
		if !templateChanged(err) || attempt == attempts {
			return done, err
		}
		select {
		case <-ctx.Done():
			return processed{}, err
		case <-time.After(pause):
		}
	}
}

func (h *handler) createFrom(ctx context.Context, template *templatecache.Template, requester user.Info, target string, options v1beta1.ProcessOptions, dryRun []string) (processed, error) {
	made, err := render(template, options.Parameters)
	if err != nil {
		return processed{}, err
	}
	request, err := h.request(template, made, options.Parameters)
	if err != nil {
		return processed{}, err
	}
	var decisions []v1beta1.Decision
	if options.Explain {
		// Before the creation: afterwards the name is taken.
		if decisions, err = h.options.Creator.Preview(ctx, userInfoOf(requester), target, request); err != nil {
			return processed{}, err
		}
	}
	stored, warnings, err := h.options.Creator.Create(ctx, userInfoOf(requester), target, request, dryRun)
	if err != nil {
		return processed{}, err
	}
	return processed{
		TemplateRef:    corev1.ObjectReference{Namespace: template.Namespace, Name: template.Name},
		VirtualMachine: stored,
		Message:        made.rendered.Message(),
		Decisions:      decisions,
		// They include those of the render webhook about parameters without effect.
		warnings: warnings,
		code:     http.StatusOK,
	}, nil
}

// templateChanged reports whether one of Stencil's webhooks has another version of the template than this server or the other webhook. The render
// webhook reports that as a conflict, the validating one as a denial because of the record.
func templateChanged(err error) bool {
	if apierrors.IsConflict(err) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	record := machine.AnnotationsPath.Key(contract.AnnotationRendered).String()
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool { return cause.Field == record })
}

// request returns the VirtualMachine to send: the reference and the parameters, like in a user's manifest, and the bound values. The render webhook
// adds the rest.
func (h *handler) request(found *templatecache.Template, made rendering, parameters map[string]string) ([]byte, error) {
	bound := delegation.BoundValues{Digest: made.compiled.Digest(), Values: made.binding.Values()}
	annotations := map[string]string{
		contract.AnnotationTemplateRef: machine.Reference{Namespace: found.Namespace, Name: found.Name}.String(),
		contract.AnnotationBoundValues: bound.String(),
	}
	for parameter, value := range parameters {
		annotations[contract.AnnotationParameterPrefix+parameter] = value
	}
	metadata := map[string]any{"annotations": annotations}
	var named struct {
		Metadata struct {
			Name         string `json:"name"`
			GenerateName string `json:"generateName"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(made.rendered.JSON(), &named); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("reading what was rendered: %w", err))
	}
	switch {
	case named.Metadata.Name != "":
		metadata["name"] = named.Metadata.Name
	case named.Metadata.GenerateName != "":
		metadata["name"] = machine.GeneratedName(named.Metadata.GenerateName, h.options.Suffix)
	default:
		return nil, apierrors.NewInvalid(templateKind, found.Name, field.ErrorList{field.Required(
			field.NewPath("spec", "virtualMachine", "metadata", "name"), "the template does not name its VirtualMachine, so it can be created by a manifest only")})
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": metadata})
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("encoding the VirtualMachine: %w", err))
	}
	return raw, nil
}

// target returns the namespace of the VirtualMachine. If it is not the namespace of the template, the user needs permission to create there, and for
// templates of any name: a permission for some names is meant for the templates of that namespace.
func (h *handler) target(ctx context.Context, requester user.Info, path map[string]string, options v1beta1.ProcessOptions) (string, error) {
	target := options.TargetNamespace
	if target == "" || target == path[namespace] {
		return path[namespace], nil
	}
	if problems := validation.IsDNS1123Label(target); len(problems) > 0 {
		return "", apierrors.NewInvalid(templateKind, path[name], field.ErrorList{field.Invalid(field.NewPath("targetNamespace"), target, problems[0])})
	}
	allowed, err := h.mayCreate(ctx, requester, target, "")
	if err != nil {
		return "", err
	}
	if !allowed {
		status := apierrors.NewForbidden(templateResource, path[name], fmt.Errorf(
			"user %q may not create VirtualMachines from templates in namespace %q; ask for verb \"create\" on %s/create of group %s there", requester.GetName(), target, templates, h.version.Group))
		status.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeForbidden, Field: "targetNamespace", Message: "the permission to create there is missing"}}
		return "", status
	}
	return target, nil
}

func userInfoOf(requester user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: requester.GetName(), UID: requester.GetUID(), Groups: requester.GetGroups()}
	for key, values := range requester.GetExtra() {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info
}
