package preview

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/internal/preview"
	"github.com/vmstencil/stencil/webhooks/internal/refuse"
	"github.com/vmstencil/stencil/webhooks/internal/verdict"
)

// Judge says what approvals, policies and rules have to say about a request; a
// validate.Handler does.
type Judge interface {
	// Judge returns a refusal when nobody can judge.
	Judge(ctx context.Context, request admission.Request) (verdict.Judgement, *admission.Response)
}

// Handler answers the admission requests of the preview webhook.
type Handler struct{ judge Judge }

// New returns a Handler.
func New(judge Judge) *Handler { return &Handler{judge} }

// Handle implements admission.Handler. It refuses everything.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	judged, refusal := h.judge.Judge(ctx, request)
	if refusal != nil {
		return *refusal
	}
	status := preview.Status(decisions(judged))
	// What the validating webhook would warn of, so that nobody takes it for the warning of
	// somebody else.
	return refuse.With(status).
		WithWarnings(verdict.Joint(request, judged).Warnings...)
}
