package templates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
	"github.com/vmstencil/stencil/templatelint"
	"github.com/vmstencil/stencil/validations"
	"github.com/vmstencil/stencil/webhooks/refuse"
)

var templateKind = schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: "VirtualMachineTemplate"}

// Handler answers the admission requests of the template webhook.
type Handler struct{}

// New returns a Handler.
func New() *Handler { return &Handler{} }

// Handle implements admission.Handler.
func (h *Handler) Handle(_ context.Context, request admission.Request) admission.Response {
	if request.SubResource != "" || request.Operation != admissionv1.Create && request.Operation != admissionv1.Update {
		return admission.Allowed("")
	}
	// The versions have identical schemas, so one type reads both.
	var object v1beta1.VirtualMachineTemplate
	if err := json.Unmarshal(request.Object.Raw, &object); err != nil {
		return refuse.With(apierrors.NewBadRequest(fmt.Sprintf("decoding the template: %v", err)).Status())
	}
	if request.Operation == admissionv1.Update && sameWords(&object, request.OldObject.Raw) {
		// Labels and finalizers of a template must stay editable even when a
		// newer Stencil would not take it any more.
		return admission.Allowed("")
	}
	compiled, err := template.Compile(&object)
	var causes field.ErrorList
	var invalid *template.InvalidError
	switch {
	case errors.As(err, &invalid):
		causes = invalid.Causes
	case err != nil:
		return refuse.With(apierrors.NewInternalError(fmt.Errorf("compiling the template: %w", err)).Status())
	}
	if causes = append(causes, templatelint.Validations(&object)...); len(causes) > 0 {
		return refuse.With(apierrors.NewInvalid(templateKind, object.Name, causes).Status())
	}
	return admission.Allowed("").WithWarnings(templatelint.Warnings(compiled)...)
}

// sameWords says whether a template says what it said before about the machines that it
// makes.
func sameWords(object *v1beta1.VirtualMachineTemplate, oldRaw []byte) bool {
	var old v1beta1.VirtualMachineTemplate
	return json.Unmarshal(oldRaw, &old) == nil && equality.Semantic.DeepEqual(object.Spec, old.Spec) &&
		object.Annotations[validations.AnnotationTemplate] == old.Annotations[validations.AnnotationTemplate]
}
