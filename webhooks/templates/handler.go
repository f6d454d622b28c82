package templates

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
	templatelint "github.com/vmstencil/stencil/template/lint"
	"github.com/vmstencil/stencil/template/validations"
	"github.com/vmstencil/stencil/webhooks/internal/changed"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

var templateKind = schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: "VirtualMachineTemplate"}

// Options are the dependencies of a Handler.
type Options struct {
	// Approvals name templates that must not lose extensions. If nil, extensions are not checked.
	Approvals Approvals
}

// Handler serves the admission requests of the template webhook.
type Handler struct{ Options }

// New returns a Handler.
func New(o Options) *Handler { return &Handler{Options: o} }

// Handle implements admission.Handler.
func (h *Handler) Handle(_ context.Context, request admission.Request) admission.Response {
	// The versions have identical schemas, so one type reads both.
	object, answer := changed.Object(request, "template", sameContent)
	if answer != nil {
		return *answer
	}
	warnings, answer := h.checkExtensions(request, object)
	if answer != nil {
		return *answer
	}
	compiled, err := template.Compile(object)
	var causes field.ErrorList
	var invalid *template.InvalidError
	switch {
	case errors.As(err, &invalid):
		causes = invalid.Causes
	case err != nil:
		return deny.With(apierrors.NewInternalError(fmt.Errorf("compiling the template: %w", err)).Status())
	default:
		causes, _ = compiled.CheckDefaults()
	}
	if causes = slices.Concat(causes, templatelint.Validations(object)); len(causes) > 0 {
		return deny.With(apierrors.NewInvalid(templateKind, object.Name, causes).Status())
	}
	return admission.Allowed("").WithWarnings(append(warnings, templatelint.Warnings(object, compiled)...)...)
}

// sameContent reports whether the spec and the validation rules of a template are unchanged.
func sameContent(before, after *v1beta1.VirtualMachineTemplate) bool {
	return equality.Semantic.DeepEqual(before.Spec, after.Spec) &&
		before.Annotations[validations.AnnotationTemplate] == after.Annotations[validations.AnnotationTemplate]
}
