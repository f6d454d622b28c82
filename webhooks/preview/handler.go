package preview

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/internal/preview"
	"github.com/vmstencil/stencil/webhooks/internal/decision"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// Evaluator returns the decisions of approvals, policies and rules about a request; a validate.Handler implements it.
type Evaluator interface {
	// Evaluate returns a denial if the request cannot be evaluated.
	Evaluate(ctx context.Context, request admission.Request) (decision.Decisions, *admission.Response)
}

// Handler serves the admission requests of the preview webhook.
type Handler struct{ evaluator Evaluator }

// New returns a Handler.
func New(evaluator Evaluator) *Handler { return &Handler{evaluator} }

// Handle implements admission.Handler. It denies every request.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	evaluated, denial := h.evaluator.Evaluate(ctx, request)
	if denial != nil {
		return *denial
	}
	status := preview.Status(decisions(evaluated))
	// The response has the warnings of the validating webhook, so that stencil-apiserver can distinguish them from the
	// warnings of other webhooks.
	return deny.With(status).
		WithWarnings(decision.Combine(request, evaluated).Warnings...)
}
