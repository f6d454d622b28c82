package policies

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policycache "github.com/vmstencil/stencil/cache/policies"
	"github.com/vmstencil/stencil/webhooks/internal/changed"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// Policies compiles a policy and runs its tests; a policycache.Cache implements it.
type Policies interface {
	Try(context.Context, *v1alpha1.VirtualMachinePolicy) (policycache.Trial, error)
}

// Options are the dependencies of a Handler.
type Options struct {
	Policies Policies
}

// Handler serves the admission requests of the policy webhook.
type Handler struct{ Options }

// New returns a Handler.
func New(o Options) *Handler { return &Handler{Options: o} }

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	object, answer := changed.Object(request, "policy", sameSpec)
	if answer != nil {
		return *answer
	}
	trial, err := h.Policies.Try(ctx, object)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return deny.With(apierrors.NewTimeoutError("the policy could not be compiled in time; try again", 1).Status())
	case err != nil:
		return deny.With(apierrors.NewInternalError(fmt.Errorf("compiling the policy: %w", err)).Status())
	case len(trial.Problems) > 0:
		return deny.With(invalid(object.Name, trial.Problems))
	}
	return admission.Allowed("").WithWarnings(warnings(trial)...)
}

func sameSpec(before, after *v1alpha1.VirtualMachinePolicy) bool {
	return equality.Semantic.DeepEqual(before.Spec, after.Spec)
}
