package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

var (
	requestKind     = schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: "VirtualMachineTemplateRequest"}
	requestResource = schema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: "virtualmachinetemplaterequests"}
)

// Templates returns the templates in the cluster; a templatecache.Cache implements it.
type Templates interface {
	Get(namespace, name string) *templatecache.Template
}

// Permissions checks what users may do; a permission.Checker implements it.
type Permissions interface {
	May(context.Context, authenticationv1.UserInfo, permission.Action) (bool, error)
}

// VirtualMachines reports whether a VirtualMachine exists.
type VirtualMachines interface {
	Exists(ctx context.Context, namespace, name string) (bool, error)
}

// Options are the dependencies of a Handler.
type Options struct {
	Templates       Templates
	Permissions     Permissions
	VirtualMachines VirtualMachines
}

// Handler serves the admission requests of the webhook.
type Handler struct{ Options }

// New returns a Handler.
func New(o Options) *Handler { return &Handler{Options: o} }

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	// The spec of a request is immutable by its CustomResourceDefinition.
	if request.SubResource != "" || request.Operation != admissionv1.Create {
		return admission.Allowed("")
	}
	// The versions have identical schemas, so one type reads both.
	var object v1beta1.VirtualMachineTemplateRequest
	if err := json.Unmarshal(request.Object.Raw, &object); err != nil {
		return deny.With(apierrors.NewBadRequest(fmt.Sprintf("decoding the request: %v", err)).Status())
	}
	object.Namespace = request.Namespace
	causes := check(&object)
	if err := h.permitted(ctx, request.UserInfo, &object); err != nil {
		return deny.With(err.ErrStatus)
	}
	found, err := h.existence(ctx, &object)
	if err != nil {
		return deny.With(err.ErrStatus)
	}
	if causes = append(causes, found...); len(causes) > 0 {
		return deny.With(apierrors.NewInvalid(requestKind, object.Name, causes).Status())
	}
	return admission.Allowed("")
}

// permitted checks the permissions that the user must have before existence is disclosed.
func (h *Handler) permitted(ctx context.Context, user authenticationv1.UserInfo, object *v1beta1.VirtualMachineTemplateRequest) *apierrors.StatusError {
	for _, right := range rights(object) {
		allowed, err := h.Permissions.May(ctx, user, right.action)
		switch {
		case err != nil:
			return internal(err)
		case !allowed:
			return apierrors.NewForbidden(requestResource, object.Name, errors.New(right.denialMessage))
		}
	}
	return nil
}

// existence returns errors for a VirtualMachine that does not exist and for a template that does.
func (h *Handler) existence(ctx context.Context, object *v1beta1.VirtualMachineTemplateRequest) (field.ErrorList, *apierrors.StatusError) {
	var causes field.ErrorList
	source, path := object.Spec.VirtualMachineRef, field.NewPath("spec")
	if name := templateName(object); h.Templates.Get(object.Namespace, name) != nil {
		at := path.Child("templateName")
		if object.Spec.TemplateName == "" {
			at = field.NewPath("metadata", "name")
		}
		causes = append(causes, field.Invalid(at, name, "a VirtualMachineTemplate of this name exists; choose another spec.templateName, or delete the template"))
	}
	if len(validReference(source)) > 0 {
		return causes, nil
	}
	exists, err := h.VirtualMachines.Exists(ctx, source.Namespace, source.Name)
	if err != nil {
		return nil, internal(err)
	}
	if !exists {
		causes = append(causes, field.NotFound(path.Child("virtualMachineRef"), source.Namespace+"/"+source.Name))
	}
	return causes, nil
}

// internal returns the status for an error that is not in the user's request.
func internal(err error) *apierrors.StatusError {
	if errors.Is(err, context.DeadlineExceeded) {
		return apierrors.NewTimeoutError("the request could not be evaluated in time; try again", 1)
	}
	return apierrors.NewInternalError(err)
}
