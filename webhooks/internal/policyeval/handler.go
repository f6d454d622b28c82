package policyeval

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/approval"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/webhooks/internal/decision"
)

// RequestEvaluator returns the decision of the policies about a request; an Evaluator implements it.
type RequestEvaluator interface {
	Evaluate(ctx context.Context, request admission.Request, object map[string]any) (policyset.Decision, error)
}

// Handler serves the admission requests that only policies evaluate.
type Handler struct{ evaluator RequestEvaluator }

// NewHandler returns a Handler.
func NewHandler(evaluator RequestEvaluator) *Handler { return &Handler{evaluator} }

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.SubResource != "" || request.Operation == admissionv1.Connect {
		return admission.Allowed("")
	}
	policies, err := h.evaluator.Evaluate(ctx, request, nil)
	if err != nil {
		return decision.Unavailable(err.Error())
	}
	return decision.Combine(request, decision.Decisions{Approvals: approval.Decision{Allowed: true}, Policies: policies})
}
