package policing

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/approval"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/webhooks/internal/verdict"
)

// Asker returns the decision of the policies about a request; a Judge implements it.
type Asker interface {
	Judge(ctx context.Context, request admission.Request, object map[string]any) (policyset.Decision, error)
}

// Handler serves the admission requests that only policies evaluate.
type Handler struct{ asker Asker }

// NewHandler returns a Handler.
func NewHandler(asker Asker) *Handler { return &Handler{asker} }

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.SubResource != "" || request.Operation == admissionv1.Connect {
		return admission.Allowed("")
	}
	decision, err := h.asker.Judge(ctx, request, nil)
	if err != nil {
		return verdict.Unavailable(err.Error())
	}
	return verdict.Joint(request, verdict.Judgement{Approvals: approval.Decision{Allowed: true}, Policies: decision})
}
