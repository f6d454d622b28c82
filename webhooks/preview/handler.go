package preview

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/internal/preview"
	"github.com/vmstencil/stencil/webhooks/internal/refuse"
	"github.com/vmstencil/stencil/webhooks/internal/verdict"
)

// Judge returns the decisions of approvals, policies and rules about a request; a validate.Handler implements it.
type Judge interface {
	// Judge returns a denial if the request cannot be evaluated.
	Judge(ctx context.Context, request admission.Request) (verdict.Judgement, *admission.Response)
}

// Handler serves the admission requests of the preview webhook.
type Handler struct{ judge Judge }

// New returns a Handler.
func New(judge Judge) *Handler { return &Handler{judge} }

// Handle implements admission.Handler. It denies every request.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	judged, refusal := h.judge.Judge(ctx, request)
	if refusal != nil {
		return *refusal
	}
	status := preview.Status(decisions(judged))
	// The response has the warnings of the validating webhook, so that stencil-apiserver can distinguish them from the
	// warnings of other webhooks.
	return refuse.With(status).
		WithWarnings(verdict.Joint(request, judged).Warnings...)
}
