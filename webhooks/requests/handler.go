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

var requestKind = schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: "VirtualMachineTemplateRequest"}

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
	taken, err := h.taken(ctx, request.UserInfo, &object)
	if err != nil {
		return deny.With(internal(err).ErrStatus)
	}
	if causes = append(causes, taken...); len(causes) > 0 {
		return deny.With(apierrors.NewInvalid(requestKind, object.Name, causes).Status())
	}
	response := admission.Allowed("")
	if h.missing(ctx, request.UserInfo, &object) {
		source := object.Spec.VirtualMachineRef
		response = response.WithWarnings(fmt.Sprintf("VirtualMachine %s/%s does not exist; the request waits for it until its timeout", source.Namespace, source.Name))
	}
	return response
}

// taken returns the error of a request whose template exists, if the user may know that.
func (h *Handler) taken(ctx context.Context, user authenticationv1.UserInfo, object *v1beta1.VirtualMachineTemplateRequest) (field.ErrorList, error) {
	if allowed, err := h.Permissions.May(ctx, user, permission.CreateTemplates(object.Namespace)); err != nil || !allowed {
		return nil, err
	}
	name := templateName(object)
	if h.Templates.Get(object.Namespace, name) == nil {
		return nil, nil
	}
	at := field.NewPath("spec", "templateName")
	if object.Spec.TemplateName == "" {
		at = field.NewPath("metadata", "name")
	}
	return field.ErrorList{field.Invalid(at, name, "a VirtualMachineTemplate of this name exists; choose another spec.templateName, or delete the template")}, nil
}

// missing reports whether the VirtualMachine does not exist, if the user may know that. It is for a warning, so no error denies the request.
func (h *Handler) missing(ctx context.Context, user authenticationv1.UserInfo, object *v1beta1.VirtualMachineTemplateRequest) bool {
	if allowed, err := h.Permissions.May(ctx, user, permission.Capture(object)); err != nil || !allowed {
		return false
	}
	source := object.Spec.VirtualMachineRef
	exists, err := h.VirtualMachines.Exists(ctx, source.Namespace, source.Name)
	return err == nil && !exists
}

// internal returns the status for an error that is not in the user's request.
func internal(err error) *apierrors.StatusError {
	if errors.Is(err, context.DeadlineExceeded) {
		return apierrors.NewTimeoutError("the request could not be evaluated in time; try again", 1)
	}
	return apierrors.NewInternalError(err)
}
